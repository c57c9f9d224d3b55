"""A program that type checkers must accept in their strict mode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import List, Optional

import leasehold
from leasehold import aio


def blocking(locks: leasehold.Client) -> Optional[int]:
    with locks.lock("a", ttl=10, wait=5.5, shared=True) as guard:
        fence: int = guard.fence
        left: float = guard.remaining
        guard.ensure(2)
        guard.on_lost(lambda reason: print(reason.upper(), fence, left))
    with locks.lock_all(["a", "b"]) as both:
        fences: dict[str, int] = both.fences
        print(fences)
    with locks.semaphore("c", 3) as permit:
        print(permit.name)
    maybe = locks.lock("d").try_acquire()
    if maybe is None:
        return None
    outcome: str = maybe.release()
    holders: List[leasehold.Holder] = locks.holders("d")
    for holder in holders:
        print(holder.client.host if holder.client else outcome)
    return fence


def requests(locks: leasehold.Client) -> bytes:
    start = locks.once("e", payload="f").begin()
    if isinstance(start, leasehold.Run):
        return start.commit("done").result
    if isinstance(start, leasehold.Done):
        return start.result
    return b"" if start.holder is None else start.holder.text.encode()


def leaders(locks: leasehold.Client) -> Iterator[str]:
    for change in locks.election("g").observe():
        if change.leader:
            yield change.leader.value


async def tasks(locks: aio.Client) -> None:
    async with locks.lock("a") as guard:
        lost: asyncio.Future[str] = guard.lost
        print(lost.done())
    held: aio.Guard = await locks.lock("a").acquire(wait=None)
    await held.release()
    result: bytes = await locks.once("e").run(pay)
    print(result)


async def pay(run: aio.Run) -> bytes:
    return str(run.fence).encode()


async def async_leaders(locks: aio.Client) -> AsyncIterator[int]:
    async for change in locks.election("g").observe():
        if change.leader:
            yield change.leader.fence


locks = leasehold.connect(["redis://a", "redis://b"], label="billing")


@locks.lock("job")
def job(number: int) -> str:
    return str(number)


@aio.connect("redis://a").lock("job")
async def async_job(number: int) -> str:
    return str(number)


text: str = job(3)
coroutine = async_job(3)
try:
    pass
except leasehold.Busy as busy:
    name: Optional[str] = busy.name
