"""Event loops that are closed by hand, uvloop, and other threads' loops."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from typing import Any, Callable

import leasehold
import pytest
from leasehold import aio

from support import Redis, wait_until

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop]
try:
    import uvloop

    LOOPS.append(uvloop.new_event_loop)
except ImportError:
    pass


@pytest.fixture(params=LOOPS, ids=lambda it: it.__module__)
def new_loop(request: Any) -> Callable[[], asyncio.AbstractEventLoop]:
    make: Callable[[], asyncio.AbstractEventLoop] = request.param
    return make


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_closed_loops_end_their_calls(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    redis: Redis,
    locks: leasehold.Client,
    name: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    client = aio.connect(redis.url)
    with locks.lock(name):

        def one() -> None:
            loop = new_loop()
            task = loop.create_task(client.lock(name).acquire())
            loop.run_until_complete(asyncio.sleep(0.002))
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            loop.close()

        one()
        gc.collect()
        before = descriptors()
        for _ in range(30):
            one()
        gc.collect()
        assert descriptors() < before + 10  # each loop has two of them
        wait_until(lambda: not locks.waiters(name))
    locks.lock(name).acquire(wait=5).release()
    asyncio.run(client.close())
    assert "Traceback" not in capfd.readouterr().err


def test_one_client_serves_loops_in_turn(
    new_loop: Callable[[], asyncio.AbstractEventLoop], redis: Redis, name: str
) -> None:
    client = aio.connect(redis.url)

    async def work() -> int:
        async with client.lock(name, wait=5) as guard:
            return guard.fence

    fences = []
    for _ in range(5):
        loop = new_loop()
        fences.append(loop.run_until_complete(work()))
        loop.close()
    assert fences == sorted(set(fences))
    asyncio.run(client.close())


def test_loops_of_threads_exclude_each_other(redis: Redis, name: str) -> None:
    client, total, inside = aio.connect(redis.url), [0], [0]

    async def work() -> None:
        for _ in range(10):
            async with client.lock(name):
                inside[0] += 1
                assert inside[0] == 1
                await asyncio.sleep(0)
                inside[0] -= 1
                total[0] += 1

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total == [80]
    asyncio.run(client.close())


def test_loop_cancels_a_lost_block(
    new_loop: Callable[[], asyncio.AbstractEventLoop], redis: Redis, name: str
) -> None:
    async def main() -> None:
        async with aio.connect(redis.url) as locks:
            with pytest.raises(leasehold.Lost):
                async with locks.lock(name) as guard:
                    guard.give_up()
                    await asyncio.Event().wait()
            tasks = [asyncio.create_task(locks.lock(f"{name}/1").acquire()) for _ in range(3)]
            first = await tasks[0]
            for task in tasks[1:]:
                task.cancel()
            assert await first.release() == "released"
            await asyncio.gather(*tasks[1:], return_exceptions=True)

    loop = new_loop()
    loop.run_until_complete(main())
    loop.close()
