"""Locks of asyncio: cancellation and losses."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
from typing import Any, Awaitable, Callable

import leasehold
import pytest
from leasehold import aio

from support import Redis

Body = Callable[[aio.Client, aio.Client], Awaitable[None]]


@pytest.fixture
def run(redis: Redis) -> Callable[[Body], None]:
    """Runs a body with two clients."""

    def run(body: Body) -> None:
        async def main() -> None:
            async with aio.connect(redis.url) as locks, aio.connect(redis.url) as others:
                await body(locks, others)

        asyncio.run(main())

    return run


async def until(condition: Callable[[], Awaitable[Any]]) -> Any:
    for _ in range(4000):
        value = await condition()
        if value:
            return value
        await asyncio.sleep(0.005)
    raise AssertionError("not in time")


def cancelling() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task and sys.version_info >= (3, 11) else 0


def test_block_holds_and_frees(run: Any, redis: Redis, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        async with locks.lock(name) as guard:
            assert guard.is_valid and redis.value(name) == guard.owner
            assert await others.lock(name).try_acquire() is None
            with pytest.raises(leasehold.Busy):
                await others.lock(name, wait=0.01).acquire()
            await guard.renew()
            await guard.downgrade()
            async with others.lock(name, shared=True, wait=5):
                pass
        assert redis.value(name) is None
        lost = guard
        assert not lost.is_valid

    run(body)


def test_sets_semaphores_and_looks(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        async with locks.lock_all([f"{name}/1", f"{name}/2"]) as guard:
            assert len(guard.fences) == 2
            assert len((await locks.list_locks(f"{name}/*")).locks) == 2
        async with locks.semaphore(name, 2), others.semaphore(name, 2):
            assert len(await locks.holders(name)) == 2
            assert await locks.waiters(name) == []
            assert (await locks.break_lock(name, 1)).outcome == "held_by"
        assert (await locks.health())[0].has_vote
        handle = (await locks.lock(name, wait=5).acquire()).into_handle()
        guard = await others.adopt(await others.renew(handle))
        assert await guard.release() == "released"
        assert await others.release(handle) == "was_lost"

    run(body)


def test_decorated_coroutine_holds_the_lock(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        @locks.lock(name)
        async def job() -> bool:
            return await others.lock(name).try_acquire() is None

        assert await job()

    run(body)


def test_lock_keeps_what_a_task_acquired(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        lock = locks.lock(name)
        await lock.acquire()
        gc.collect()
        assert await others.lock(name).try_acquire() is None
        assert await lock.release() == "released"
        with pytest.warns(RuntimeWarning, match="was dropped"):
            await locks.lock(name, wait=5).acquire()
            gc.collect()

    run(body)


def test_loss_cancels_the_block(run: Any, redis: Redis, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        with pytest.raises(leasehold.Lost) as lost:
            async with locks.lock(name, ttl=0.6):
                redis.command("DEL", name)
                await asyncio.Event().wait()
        assert lost.value.reason == "gone" and lost.value.name == name
        assert isinstance(lost.value.__cause__, asyncio.CancelledError)
        assert cancelling() == 0

    run(body)


def test_outer_cancellation_stays_a_cancellation(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        entered = asyncio.Event()

        async def work() -> None:
            async with locks.lock(name):
                entered.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with others.lock(name, wait=5):
            pass

    run(body)


def test_outer_cancellation_wins_over_a_loss(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        guards: list[aio.Guard] = []

        async def work() -> None:
            async with locks.lock(name) as guard:
                guards.append(guard)
                try:
                    await asyncio.Event().wait()
                finally:
                    task.cancel()  # after the cancellation by the loss

        task = asyncio.create_task(work())
        await until(lambda: _true(bool(guards)))
        guards[0].give_up()
        if sys.version_info >= (3, 11):
            with pytest.raises(asyncio.CancelledError):
                await task

    run(body)


async def _true(value: Any) -> Any:
    return value


def test_error_of_the_block_wins(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        with pytest.raises(ZeroDivisionError):
            async with locks.lock(name) as guard:
                guard.give_up()
                raise ZeroDivisionError
        with pytest.raises(ZeroDivisionError):
            async with locks.lock(name, wait=5) as guard:
                guard.give_up()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    raise ZeroDivisionError from None
        assert cancelling() == 0
        await asyncio.sleep(0)

    run(body)


def test_block_that_ends_under_a_loss_raises(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        with pytest.raises(leasehold.Lost):
            async with locks.lock(name) as guard:
                guard.give_up()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    pass  # against the rules of asyncio
        await asyncio.sleep(0)
        assert cancelling() == 0

    run(body)


def test_nested_blocks_are_lost_apart(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        async with locks.lock(f"{name}/outer") as outer:
            with pytest.raises(leasehold.Lost):
                async with locks.lock(f"{name}/inner") as inner:
                    inner.give_up()
                    await asyncio.Event().wait()
            await asyncio.sleep(0)
            outer.ensure()

    run(body)


def test_loss_is_a_future(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        lock, reasons = locks.lock(name), []
        guard = await lock.acquire()
        guard.lost.add_done_callback(lambda it: reasons.append(it.result()))
        guard.give_up()
        assert await guard.lost == "given_up"
        await asyncio.sleep(0)
        assert reasons == ["given_up"]
        await guard.release()
        guard = await lock.acquire(wait=5)
        lost = guard.lost
        await guard.release()
        await asyncio.sleep(0)
        assert not lost.done()

    run(body)


def test_unobserved_loss_makes_no_noise(run: Any, redis: Redis, name: str, caplog: Any) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        lock = locks.lock(name, ttl=0.3)
        guard = await lock.acquire()
        assert not guard.lost.done()
        redis.command("DEL", name)
        await until(lambda: _true(guard.lost_reason))
        await guard.release()

    run(body)
    gc.collect()
    assert [it.getMessage() for it in caplog.records] == []


def test_close_loses_and_frees(run: Any, redis: Redis, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        client = aio.connect(redis.url)
        guard = await client.lock(name).acquire()
        lost = guard.lost
        waiting = asyncio.create_task(client.lock(name).acquire())
        await until(lambda: locks.waiters(name))
        await client.close()
        assert await lost == "closed"
        with pytest.raises(leasehold.Closed):
            await waiting
        assert redis.value(name) is None

    run(body)


def test_cancelled_wait_leaves_the_queue(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        async with locks.lock(name):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(others.lock(name).acquire(), 0.05)
            task = asyncio.create_task(others.lock(name).acquire())
            await until(lambda: locks.waiters(name))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: _empty(locks, name))

    run(body)


async def _empty(locks: aio.Client, name: str) -> bool:
    return not await locks.waiters(name)


def test_cancelled_acquires_leave_nothing_held(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        chance = random.Random(7)

        async def one(number: int) -> None:
            task = asyncio.create_task(locks.lock(f"{name}/{number % 8}").acquire())
            await asyncio.sleep(chance.random() * 0.004)
            task.cancel()
            try:
                guard = await task
            except asyncio.CancelledError:
                return
            await guard.release()

        for _ in range(25):
            await asyncio.gather(*(one(number) for number in range(40)))
        await until(lambda: _no_locks(others, name))

    run(body)


async def _no_locks(client: aio.Client, name: str) -> bool:
    return not (await client.list_locks(f"{name}/*")).locks


def test_cancelled_release_goes_on(run: Any, redis: Redis, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        guard = await locks.lock(name).acquire()
        redis.freeze()  # so that the answer cannot be here before the cancellation
        try:
            task = asyncio.create_task(guard.release())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            redis.thaw()
        async with others.lock(name, wait=5):
            pass

    run(body)


def test_grant_in_the_turn_of_a_cancellation_is_freed(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        guard = await locks.lock(name).acquire()
        task = asyncio.create_task(others.lock(name).acquire())
        await until(lambda: locks.waiters(name))
        # The cancellation comes after the answer, and before the task runs.
        loop = asyncio.get_running_loop()
        calls = aio._calls_of(loop)
        loop.remove_reader(calls.fileno())

        def answer_and_cancel() -> None:
            before = len(calls)
            calls.run()
            if len(calls) < before:
                task.cancel()

        loop.add_reader(calls.fileno(), answer_and_cancel)
        guard._discard()
        with pytest.raises(asyncio.CancelledError):
            await task
        loop.remove_reader(calls.fileno())
        loop.add_reader(calls.fileno(), calls.run)
        async with locks.lock(name, wait=5):
            pass

    run(body)


def test_waiting_tasks_are_served_in_order(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        served: list[int] = []

        async def wait(number: int) -> None:
            async with locks.lock(name):
                served.append(number)

        async with others.lock(name):
            tasks = []
            for number in range(30):
                tasks.append(asyncio.create_task(wait(number)))
                await asyncio.sleep(0)
            await until(lambda: _as_many(others, name, 30))
        await asyncio.gather(*tasks)
        assert served == list(range(30))

    run(body)


async def _as_many(client: aio.Client, name: str, count: int) -> bool:
    return len(await client.waiters(name)) == count


def test_tasks_contend_for_one_counter(run: Any, name: str) -> None:
    async def body(locks: aio.Client, others: aio.Client) -> None:
        lock, inside, total = locks.lock(name), 0, 0

        async def work() -> None:
            nonlocal inside, total
            async with lock:
                inside += 1
                assert inside == 1
                await asyncio.sleep(0)
                inside -= 1
                total += 1

        await asyncio.gather(*(work() for _ in range(200)))
        assert total == 200

    run(body)


def test_anyio_cancels_a_wait(redis: Redis, name: str) -> None:
    anyio = pytest.importorskip("anyio")

    async def main() -> None:
        async with aio.connect(redis.url) as locks, aio.connect(redis.url) as others:
            async with locks.lock(name):
                with anyio.move_on_after(0.05) as scope:
                    await others.lock(name).acquire()
                assert scope.cancelled_caught
                await until(lambda: _empty(locks, name))

    anyio.run(main)


