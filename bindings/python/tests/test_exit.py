"""The end of the interpreter, with locks held and waited for."""

from __future__ import annotations

import leasehold
import pytest

from support import Program, Redis, run

BEGIN = """
import asyncio, sys, threading, leasehold
from leasehold import aio
url, name = sys.argv[1:]
locks = leasehold.connect(url)
guard = locks.lock(name).acquire()
"""

ENDS = {
    "held": "",
    "exit": "sys.exit(3)",
    "raised": "raise SystemExit(3)",
    "watched": "guard.on_lost(print)",
    "waiting": """
other = leasehold.connect(url)
threading.Thread(target=lambda: other.lock(name).acquire(), daemon=True).start()
while not locks.waiters(name):
    pass
""",
    "busy": """
import itertools
def work(number):
    for _ in itertools.count():
        with locks.lock(f"{name}/{number}"):
            begun[number].set()
begun = [threading.Event() for _ in range(8)]
for number in range(8):
    threading.Thread(target=work, args=(number,), daemon=True).start()
for event in begun:
    event.wait()
""",
    "asyncio": """
async def main():
    global held, task
    client = aio.connect(url)
    held = await client.lock(name + "/aio").acquire()
    task = asyncio.ensure_future(client.lock(name).acquire())
    await asyncio.sleep(0)
    held.lost.add_done_callback(print)
asyncio.run(main())
""",
    "observing": """
threading.Thread(target=lambda: list(locks.election(name).observe()), daemon=True).start()
""",
    "leading": "leadership = locks.election(name + '/leader').campaign()",
}


@pytest.mark.parametrize("end", ENDS)
def test_ended_process_leaves_no_lock(
    end: str, redis: Redis, locks: leasehold.Client, name: str
) -> None:
    for _ in range(3):
        program = Program(BEGIN + ENDS[end], redis.url, name)
        code, output, errors = program.end(30)
        assert (code, errors) == (3 if end in ("exit", "raised") else 0, "")
        left = [it.name for it in locks.list_locks(f"{name}*").locks]
        assert (left, locks.waiters(name)) == ([], [])


def test_raised_error_is_shown_and_frees(redis: Redis, name: str) -> None:
    code, _, errors = Program(BEGIN + "1 / 0", redis.url, name).end()
    assert code == 1 and errors.count("Traceback") == 1
    assert redis.value(name) is None


def test_killed_process_frees_after_its_ttl(
    redis: Redis, locks: leasehold.Client, name: str
) -> None:
    text = BEGIN.replace("lock(name)", "lock(name, ttl=1)")
    with Program(text + "print('held'); sys.stdin.read()", redis.url, name) as program:
        assert program.line() == "held"
        program.process.kill()
        locks.lock(name).acquire(wait=20).release()


def test_unreachable_store_delays_the_end_little(name: str) -> None:
    server = Redis()
    try:
        text = BEGIN + """
more = [leasehold.connect(url) for _ in range(4)]
guards = [client.lock(f"{name}/{number}").acquire() for number, client in enumerate(more)]
print('held')
sys.stdin.readline()
"""
        with Program(text, server.url, name) as program:
            assert program.line() == "held"
            server.freeze()
            program.tell()
            code, _, errors = program.end(6)
            assert (code, errors) == (0, "")
    finally:
        server.thaw()
        server.stop()


SUBINTERPRETER = """
import sys
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
try:
    interpreter = interpreters.create()
    answer = interpreters.run_string(interpreter, '''
try:
    import leasehold
    print("imported")
except ImportError as error:
    print("refused")
''')
finally:
    sys.stdout.flush()
"""


def test_subinterpreter_imports_or_refuses() -> None:
    assert run(SUBINTERPRETER).strip() in ("imported", "refused")


def test_import_loads_no_asyncio_and_no_logging() -> None:
    text = "import leasehold, sys; print('asyncio' in sys.modules, 'logging' in sys.modules)"
    assert run(text) == "False False\n"
