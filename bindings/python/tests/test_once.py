"""Requests that take effect once."""

from __future__ import annotations

import asyncio

import leasehold
import pytest
from leasehold import aio

from support import Redis


def test_second_caller_gets_the_result(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    runs: list[int] = []

    def pay(run: leasehold.Run) -> str:
        runs.append(run.fence)
        return f"paid {run.fence}"

    first = locks.once(name, payload="EUR 12").run(pay)
    assert others.once(name, payload="EUR 12").run(pay) == first == f"paid {runs[0]}".encode()
    assert len(runs) == 1
    done = others.once(name, payload="EUR 12").result()
    assert done and done.result == first and done.fence == runs[0] and done.remaining > 80_000
    with pytest.raises(leasehold.InvalidInput, match="payload"):
        locks.once(name, payload="EUR 13").run(pay)


def test_failed_run_leaves_no_trace(locks: leasehold.Client, name: str) -> None:
    def fail(_: leasehold.Run) -> bytes:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        locks.once(name, payload="a").run(fail)
    assert locks.once(name, payload="b").run(lambda _: b"other") == b"other"


def test_lost_run_commits_nothing(locks: leasehold.Client, name: str) -> None:
    def lose(run: leasehold.Run) -> bytes:
        run.give_up()
        return b"late"

    with pytest.raises(leasehold.Lost):
        locks.once(name).run(lose)
    assert locks.once(name).result() is None


def test_run_in_progress_is_seen(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    run = locks.once(name).begin()
    assert isinstance(run, leasehold.Run)
    seen = others.once(name).try_begin()
    assert isinstance(seen, leasehold.InProgress)
    assert seen.holder and seen.holder.fence == run.fence
    with pytest.raises(leasehold.Busy):
        others.once(name, wait=0.01).run(lambda _: b"")
    done = run.commit("x")
    assert (done.result, done.fence) == (b"x", run.fence)
    assert isinstance(others.once(name).begin(), leasehold.Done)


def test_request_is_forgotten(locks: leasehold.Client, name: str) -> None:
    assert not locks.once(name).forget()
    locks.once(name).run(lambda _: b"1")
    assert locks.once(name).forget()
    assert locks.once(name).run(lambda _: b"2") == b"2"


def test_asyncio_runs_once(redis: Redis, name: str) -> None:
    async def main() -> None:
        runs = 0

        async def pay(run: aio.Run) -> bytes:
            nonlocal runs
            runs += 1
            await asyncio.sleep(0)
            return str(run.fence).encode()

        async def lose(run: aio.Run) -> bytes:
            run.give_up()
            await asyncio.sleep(60)
            return b""

        async with aio.connect(redis.url) as locks:
            results = await asyncio.gather(*(locks.once(name).run(pay) for _ in range(5)))
            assert runs == 1 and len(set(results)) == 1
            with pytest.raises(leasehold.Lost):
                await locks.once(f"{name}/lost").run(lose)
            assert await locks.once(f"{name}/lost").run(pay)
            begun = await locks.once(f"{name}/other").begin()
            assert isinstance(begun, aio.Run)
            seen = await locks.once(f"{name}/other").try_begin()
            assert isinstance(seen, leasehold.InProgress)
            assert (await begun.commit(b"y")).result == b"y"
            assert await locks.once(f"{name}/other").forget()
            assert await locks.once(f"{name}/other").result() is None

    asyncio.run(main())
