"""The same locks for asyncio and uvloop. A block under a lock is cancelled if the lock is lost.

>>> locks = leasehold.aio.connect("redis://localhost")
>>> async with locks.lock("report", wait=5) as guard:
...     await write_report(fence=guard.fence)
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import weakref
from typing import Any, AsyncIterator, Awaitable, Callable, Sequence, TypeVar, cast

from . import _leasehold, _process, _values
from ._base import AS_SET, ClientBase, ElectionBase, GuardBase, LockBase, OnceBase, as_bytes, done, step
from ._values import Break, Done, Holder, InProgress, Leader, LeaderChange, Listing, Member, Waiter
from .errors import Busy, LeaseholdError

__all__ = ["Client", "Election", "Guard", "Leadership", "Lock", "Once", "Run", "connect"]

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])

# Each loop owns its calls through the reader of their descriptor, so they end with it.
_loops: weakref.WeakKeyDictionary[
    asyncio.AbstractEventLoop, weakref.ref[_leasehold.EventLoop]
] = weakref.WeakKeyDictionary()
_process.in_forked_child(_loops.clear)


def _end_calls() -> None:
    for known in list(_loops.values()):
        calls = known()
        if calls is not None:
            calls.clear()


_process.at_end(_end_calls)


def _calls_of(loop: asyncio.AbstractEventLoop) -> _leasehold.EventLoop:
    known = _loops.get(loop)
    calls = known() if known is not None else None
    if calls is None:
        calls = _leasehold.EventLoop()
        loop.add_reader(calls.fileno(), calls.run)
        _loops[loop] = weakref.ref(calls)
    return calls


async def run(operation: _leasehold.Operation) -> Any:
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    call = operation.start(_calls_of(loop), future)
    try:
        return await future
    except asyncio.CancelledError:
        call.cancel()
        if future.done() and not future.cancelled() and future.exception() is None:
            _give_back(future.result())
        raise


def _give_back(answer: object) -> None:
    """The lock was granted in the turn of the loop that cancelled its task."""
    if isinstance(answer, tuple):
        answer = answer[-1]
    if isinstance(answer, _leasehold.Guard):
        answer.discard()


class Guard(GuardBase):
    """A held lock, until it is released or lost. Leaving its `async with` block releases it."""

    __slots__ = ("_calls", "_lost", "_block")

    def __init__(self, native: _leasehold.Guard) -> None:
        super().__init__(native)
        self._calls: list[_leasehold.Call] = []
        self._lost: asyncio.Future[str] | None = None
        self._block: _Block | None = None

    async def release(self) -> str:
        """Frees the lock, even if this call is cancelled.

        Returns "released", "was_lost", or "still_held" after `reenter`.
        """
        self._forget()
        return cast(str, await run(self._native.release()))

    async def renew(self) -> None:
        """Renews the lease now. The client does so in time by itself."""
        await run(self._native.renew())

    async def downgrade(self) -> None:
        """Turns an exclusive lock into a shared one, and lets in waiting readers."""
        await run(self._native.downgrade())

    def reenter(self) -> Guard:
        """Enters the lock once more. The last release frees it."""
        return Guard(self._native.reenter())

    @property
    def lost(self) -> asyncio.Future[str]:
        """A future of the reason, done once the lock is lost. It stays pending after a release."""
        if self._lost is None:
            self._lost = asyncio.get_running_loop().create_future()
            self._watch(self._native.ended(), self._lost)
        return self._lost

    def _watch(self, operation: _leasehold.Operation, future: asyncio.Future[Any]) -> None:
        self._calls.append(operation.start(_calls_of(future.get_loop()), future))

    def _forget(self) -> None:
        super()._forget()
        while self._calls:
            self._calls.pop().cancel()

    def _enter_block(self) -> None:
        self._block = _Block(self.name, asyncio.current_task())
        self.lost.add_done_callback(self._block.cancel)

    async def _leave_block(self, error: BaseException | None) -> None:
        block, self._block = self._block, None
        was_cancelled = block is not None and block.end(error)
        if self._native.is_released:
            return
        try:
            self.ensure()
        except LeaseholdError as lost:
            self._discard()
            if was_cancelled or error is None:
                # Only a cancellation of this block becomes `Lost`, as in asyncio.timeout.
                raise lost from error
            return
        if error is not None:
            # The error of the block counts. The release goes on in the background.
            self._discard()
            return
        try:
            await self.release()
        except LeaseholdError as failed:
            # The block has ended under the lock, which is free after its TTL at the latest.
            import logging

            logging.getLogger("leasehold").warning("release failed: %s", failed)

    async def __aenter__(self) -> Guard:
        self._enter_block()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._leave_block(error)


class _Block:
    """A block under a lock, and the task that runs it."""

    __slots__ = ("_name", "_task", "_cancelling", "_cancelled")

    def __init__(self, name: str, task: asyncio.Task[Any] | None) -> None:
        self._name = name
        self._task = task
        self._cancelling = _cancelling(task)
        self._cancelled = False

    def cancel(self, lost: asyncio.Future[str]) -> None:
        if self._task is not None and not lost.cancelled():
            self._cancelled = True
            self._task.cancel(f"lock {self._name!r} is lost: {lost.result()}")

    def end(self, error: BaseException | None) -> bool:
        """Returns whether `error` is the cancellation of this block, and of no other one."""
        task, self._task = self._task, None
        if not self._cancelled or task is None:
            return False
        uncancel = getattr(task, "uncancel", None)  # since Python 3.11
        is_ours = uncancel is None or uncancel() <= self._cancelling
        return is_ours and isinstance(error, asyncio.CancelledError)


def _cancelling(task: asyncio.Task[Any] | None) -> int:
    cancelling = getattr(task, "cancelling", None)
    return 0 if cancelling is None else cast(int, cancelling())


class Lock(LockBase[Guard]):
    """A lock with its options: `async with` it, decorate with it, or acquire it.

    One object serves any number of tasks.
    """

    __slots__ = ()

    async def acquire(self, wait: float | None = AS_SET) -> Guard:
        """Waits for the lock. Raises `Busy` if another client still holds it when the wait ends.

        The lock object keeps the guard until it is released, so `lock.release()` works too.
        """
        return self._keep(Guard(await run(self._acquire(wait))), _task())

    async def try_acquire(self) -> Guard | None:
        """Asks once. Returns `None` if another client holds the lock."""
        guard = await run(self._request.try_acquire())
        return None if guard is None else self._keep(Guard(guard), _task())

    async def release(self) -> str:
        """Releases the lock that this task acquired last through this object."""
        return await self._latest(_task()).release()

    async def __aenter__(self) -> Guard:
        guard = Guard(await run(self._acquire(AS_SET)))
        guard._enter_block()
        return self._enter(guard, _task())

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._exit(_task())._leave_block(error)

    def __call__(self, function: F) -> F:
        """Decorates a coroutine function: each call holds the lock."""

        @functools.wraps(function)
        async def locked(*args: Any, **kwargs: Any) -> Any:
            async with self:
                return await function(*args, **kwargs)

        return cast(F, locked)


def _task() -> int:
    return id(asyncio.current_task())


class Run(Guard):
    """A run of a request by this caller, under its lock."""

    __slots__ = ()

    async def commit(self, result: bytes | str = b"") -> Done:
        """Stores the result for all other callers, and releases the lock."""
        self._forget()
        return Done(*await run(self._native.commit(as_bytes(result))))


class Once(OnceBase):
    """A request that takes effect once, no matter how often it is made."""

    __slots__ = ()

    async def run(
        self,
        function: Callable[[Run], Awaitable[bytes | str]],
        wait: float | None = AS_SET,
    ) -> bytes:
        """Runs `function` under the lock unless the request is done, and returns its result.

        If `function` raises, nothing is stored, and the next caller runs it again. It is cancelled if the lock is lost.
        Raises `Busy` if another caller still runs it when the wait ends.
        """
        start = await self.begin(wait)
        if isinstance(start, Done):
            return start.result
        if isinstance(start, InProgress):
            raise Busy(f"another caller runs the request {self.name!r}")
        async with start:
            try:
                result = await function(start)
                start.ensure()
            except Exception:
                with contextlib.suppress(LeaseholdError):  # the next caller runs a request that has begun
                    await start.release()
                raise
            return (await start.commit(result)).result

    async def begin(self, wait: float | None = AS_SET) -> Run | Done | InProgress:
        """Determines whether this caller runs the request, and waits for a caller that runs it."""
        return step(Run, *await run(self._begin(wait)))

    async def try_begin(self) -> Run | Done | InProgress:
        """`begin` without waiting."""
        return step(Run, *await run(self._once.try_begin()))

    async def result(self) -> Done | None:
        """Returns the result if the request is certainly done."""
        return done(await run(self._once.result()))

    async def forget(self) -> bool:
        """Forgets the request, so that the next caller runs it. Returns whether there was one."""
        return cast(bool, await run(self._once.forget()))


class Leadership(Guard):
    """The leadership of an election, until it is resigned or lost. A release resigns."""

    __slots__ = ()

    def __init__(self, native: _leasehold.Guard) -> None:
        super().__init__(native)
        self._watch(native.keep_announced(), asyncio.get_running_loop().create_future())

    async def publish(self, value: str) -> None:
        """Publishes `value` in place of the earlier one."""
        await run(self._native.publish(value))

    resign = Guard.release


class Election(ElectionBase[Leadership]):
    """An election of one leader among all candidates. `async with` it leads, or campaign and observe."""

    __slots__ = ()

    async def campaign(self, wait: float | None = AS_SET) -> Leadership:
        """Waits until this candidate leads."""
        return self._keep(Leadership(await run(self._campaign(wait))), _task())

    async def leader(self) -> Leader | None:
        """Returns the current leader."""
        return _values.leader(await run(self._election.leader()))

    async def observe(self) -> AsyncIterator[LeaderChange]:
        """Returns the current leader, then each change. Ends when the client is closed."""
        watch = self._election.observe()
        while True:
            change = _values.change(await run(watch.next()))
            if change is None:
                return
            yield change

    async def __aenter__(self) -> Leadership:
        leadership = Leadership(await run(self._campaign(AS_SET)))
        leadership._enter_block()
        return self._enter(leadership, _task())

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._exit(_task())._leave_block(error)


class Client(ClientBase[Lock, Once, Election]):
    """The locks of one store. Tasks and loops share it. `async with` closes it at the end."""

    __slots__ = ()
    _lock, _once, _election = Lock, Once, Election

    async def init(self) -> bool:
        """Prepares the store, as `leasehold init` does. Returns whether it changed anything."""
        return await asyncio.get_running_loop().run_in_executor(None, self._native.init)

    async def holders(self, name: str) -> list[Holder]:
        """Returns the holders of a lock."""
        return _values.holders(await run(self._native.holders(name)))

    async def waiters(self, name: str) -> list[Waiter]:
        """Returns the waiters for a lock, in the order in which the store serves them."""
        return _values.waiters(await run(self._native.waiters(name)))

    async def list_locks(self, pattern: str = "*", limit: int = 1000) -> Listing:
        """Returns the first held locks whose names match, for example "invoices/*"."""
        return _values.listing(await run(self._native.list_locks(pattern, limit)))

    async def health(self) -> list[Member]:
        """Asks each server of the store whether its answers count."""
        return _values.members(await run(self._native.health()))

    async def break_lock(
        self,
        name: str,
        fence: int,
        *,
        at_once: bool = False,
        user: str | None = None,
        reason: str | None = None,
    ) -> Break:
        """Takes a lock from the holder with this fence, whose guard is lost at its next renewal.

        Others may enter when the lease ends, or at once.
        """
        breaking = self._native.break_lock(name, fence, at_once, user, reason)
        return _values.broken(await run(breaking))

    async def adopt(self, handle: str) -> Guard:
        """Holds the lock of a handle from now on."""
        return Guard(await run(self._native.adopt(handle)))

    async def renew(self, handle: str) -> str:
        """Renews the lease of a handle once, and returns the handle with its new deadline."""
        return cast(str, await run(self._native.renew_handle(handle)))

    async def release(self, handle: str) -> str:
        """Releases the lock of a handle, and returns the outcome."""
        return cast(str, await run(self._native.release_handle(handle)))

    async def close(self, limit: float = 5.0) -> None:
        """Ends all calls and waits, releases the locks, and waits for the store for at most `limit` seconds."""
        await run(self._native.close(limit))

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            await self.close()
        except LeaseholdError:
            if error is None:
                raise


def connect(url: str | Sequence[str], *, label: str | None = None) -> Client:
    """Returns the locks at `url`, as `leasehold.connect` does. Sends nothing yet."""
    return Client(url, label=label)
