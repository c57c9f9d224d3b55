"""Ctrl-C, and the GIL during a wait."""

from __future__ import annotations

import signal
import threading

import leasehold
import pytest

from support import Program, Redis, wait_until

BLOCKING = """
import sys, time, leasehold
locks = leasehold.connect(sys.argv[1])
try:
    locks.lock(sys.argv[2]).acquire()
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(locks.lock(sys.argv[2] + "/other").acquire().release())
"""

ASYNCIO = """
import asyncio, sys
from leasehold import aio
async def main():
    async with aio.connect(sys.argv[1]) as locks:
        await locks.lock(sys.argv[2]).acquire()
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted\\nreleased")
"""


@pytest.mark.parametrize("text", [BLOCKING, ASYNCIO], ids=["blocking", "asyncio"])
def test_ctrl_c_ends_a_wait(
    text: str, redis: Redis, locks: leasehold.Client, name: str
) -> None:
    with locks.lock(name):
        with Program(text, redis.url, name) as program:
            wait_until(lambda: locks.waiters(name))
            program.signal(signal.SIGINT)
            code, output, errors = program.end(10)
        assert (code, output, errors) == (0, "interrupted\nreleased\n", "")
        assert locks.waiters(name) == []


HANDLER = """
import signal, sys, threading, leasehold
locks = leasehold.connect(sys.argv[1])
signal.signal(signal.SIGUSR1, lambda *_: print("handled", flush=True))
with locks.lock(sys.argv[2]):
    print("held")
"""


def test_handler_that_returns_ends_no_wait(
    redis: Redis, locks: leasehold.Client, name: str
) -> None:
    with Program(HANDLER, redis.url, name) as program:
        with locks.lock(name):
            wait_until(lambda: locks.waiters(name))
            program.signal(signal.SIGUSR1)
            assert program.line() == "handled"
            assert locks.waiters(name)
        assert program.line() == "held"


def test_waiting_thread_leaves_the_gil(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    with locks.lock(name):
        thread = threading.Thread(target=lambda: others.lock(name).acquire().release())
        thread.start()
        wait_until(lambda: locks.waiters(name))
        assert sum(1 for _ in range(1_000_000)) == 1_000_000
        assert thread.is_alive()
    thread.join()
