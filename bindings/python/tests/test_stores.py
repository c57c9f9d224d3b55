"""The contract of exclusion on each store: processes that contend, and one of them is killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Any, Iterator

import leasehold
import pytest

from support import Program, Redis, Servers, stores

WORKER = """
import asyncio, sys, leasehold
from leasehold import aio
url, name, path, count, kind = sys.argv[1:]

def step(fence):
    with open(path) as file:
        number, last = map(int, file.read().split())
    assert fence > last, (fence, last)
    with open(path, "w") as file:
        file.write(f"{number + 1} {fence}")

async def tasks():
    async with aio.connect(url) as locks:
        async def work():
            for _ in range(int(count) // 4):
                async with locks.lock(name, ttl=2) as guard:
                    step(guard.fence)
        await asyncio.gather(*(work() for _ in range(4)))

if kind == "asyncio":
    asyncio.run(tasks())
else:
    with leasehold.connect(url) as locks:
        for _ in range(int(count)):
            with locks.lock(name, ttl=2) as guard:
                step(guard.fence)
"""

VICTIM = """
import sys, leasehold
guard = leasehold.connect(sys.argv[1]).lock(sys.argv[2], ttl=2).acquire()
print(guard.fence, flush=True)
sys.stdin.read()
"""


STEP = """
read number last < "$0"
test "$LEASEHOLD_FENCE" -gt "$last" && echo "$((number + 1)) $LEASEHOLD_FENCE" > "$0"
"""


def run_commands(url: str, name: str, path: Path) -> int:
    """Contends with the command `leasehold`, and returns how often it held the lock."""
    program = os.environ.get("LEASEHOLD_COMMAND")
    if program is None:
        return 0
    command = [program, "run", "--ttl=2s", name, "--", "sh", "-c", STEP, str(path)]
    for _ in range(4):
        subprocess.run(command, env={**os.environ, "LEASEHOLD_STORE": url}, check=True)
    return 4


@pytest.fixture(params=stores(), scope="module")
def url(request: Any, redis: Redis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "file":
        yield f"file://{tmp_path_factory.mktemp('locks')}"
    elif request.param == "redis":
        yield redis.url
    else:
        servers = Servers(request.param)
        with leasehold.connect(servers.url) as client:
            assert client.init() == (request.param == "postgres")
        yield servers.url
        servers.stop()


def test_contenders_exclude_each_other_despite_a_death(
    url: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "counter"
    path.write_text("0 0")
    with contextlib.ExitStack() as programs:
        victim = programs.enter_context(Program(VICTIM, url, name))
        fence = int(victim.line())
        path.write_text(f"0 {fence}")
        workers = [
            programs.enter_context(Program(WORKER, url, name, str(path), "24", kind))
            for kind in ["threads", "asyncio"] * 2
        ]
        victim.process.kill()
        victim.process.wait()
        commands = run_commands(url, name, path)
        for worker in workers:
            assert worker.end() == (0, "", "")
    number, _ = map(int, path.read_text().split())
    assert number == 4 * 24 + commands


def test_each_store_offers_what_it_says(url: str, name: str) -> None:
    with leasehold.connect(url) as locks, leasehold.connect(url) as others:
        with locks.lock(name) as guard:
            assert others.lock(name).try_acquire() is None
            (holder,) = others.holders(name)
            assert holder.fence == guard.fence
            assert name in [it.name for it in others.list_locks(f"{name}*").locks]
        with others.lock(name, shared=True, wait=10), locks.lock(name, shared=True, wait=10):
            pass
        assert locks.once(f"{name}/once").run(lambda run: b"done") == b"done"
        assert others.once(f"{name}/once").run(lambda run: b"again") == b"done"
        with locks.election(f"{name}/leader", value="me"):
            leader = others.election(f"{name}/leader").leader()
            assert leader and leader.value == "me"


def test_memory_store_is_of_its_process(name: str) -> None:
    with leasehold.connect("memory:one") as locks, leasehold.connect("memory:one") as others:
        with leasehold.connect("memory:") as alone, locks.lock(name):
            assert others.lock(name).try_acquire() is None
            with alone.lock(name):
                pass
