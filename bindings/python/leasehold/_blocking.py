"""The blocking locks."""

from __future__ import annotations

import contextlib
import functools
from threading import get_ident
from typing import Any, Callable, Iterator, Sequence, TypeVar, cast

from . import _leasehold, _values
from ._base import AS_SET, ClientBase, ElectionBase, GuardBase, LockBase, OnceBase, as_bytes, done, step
from ._values import Break, Done, Holder, InProgress, Leader, LeaderChange, Listing, Member, Waiter
from .errors import Busy, LeaseholdError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Guard(GuardBase):
    """A held lock, until it is released or lost. Leaving its `with` block releases it."""

    __slots__ = ("_calls",)

    def __init__(self, native: _leasehold.Guard) -> None:
        super().__init__(native)
        self._calls: list[_leasehold.Call] = []

    def release(self) -> str:
        """Frees the lock. Returns "released", "was_lost", or "still_held" after `reenter`."""
        self._forget()
        return cast(str, self._native.release().wait())

    def renew(self) -> None:
        """Renews the lease now. The client does so in time by itself."""
        self._native.renew().wait()

    def downgrade(self) -> None:
        """Turns an exclusive lock into a shared one, and lets in waiting readers."""
        self._native.downgrade().wait()

    def reenter(self) -> Guard:
        """Enters the lock once more. The last release frees it."""
        return Guard(self._native.reenter())

    def on_lost(self, callback: Callable[[str], object]) -> None:
        """Calls `callback(reason)` if the lock is lost before its release.

        One daemon thread makes these calls for all guards, so a callback must not block.
        """

        def ended(reason: str | None) -> None:
            if reason is not None:
                callback(reason)

        self._watch(self._native.ended(), ended)

    def _watch(self, operation: _leasehold.Operation, callback: Callable[[Any], object]) -> None:
        from . import _watcher

        self._calls.append(_watcher.watch(operation, callback))

    def _forget(self) -> None:
        super()._forget()
        while self._calls:
            self._calls.pop().cancel()

    def _leave(self, error: BaseException | None) -> None:
        if self._native.is_released:
            return
        if error is not None:
            # The error of the block counts. The release goes on in the background.
            self._discard()
            return
        try:
            self.ensure()
        except LeaseholdError:
            self._discard()
            raise
        try:
            self.release()
        except LeaseholdError as failed:
            # The block has ended under the lock, which is free after its TTL at the latest.
            import logging

            logging.getLogger("leasehold").warning("release failed: %s", failed)

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._leave(error)


class Lock(LockBase[Guard]):
    """A lock with its options: `with` it, decorate with it, or acquire it.

    One object serves any number of threads.
    """

    __slots__ = ()

    def acquire(self, wait: float | None = AS_SET) -> Guard:
        """Waits for the lock. Raises `Busy` if another client still holds it when the wait ends.

        The lock object keeps the guard until it is released, so `lock.release()` works too.
        """
        return self._keep(Guard(self._acquire(wait).wait()), get_ident())

    def try_acquire(self) -> Guard | None:
        """Asks once. Returns `None` if another client holds the lock."""
        guard = self._request.try_acquire().wait()
        return None if guard is None else self._keep(Guard(guard), get_ident())

    def release(self) -> str:
        """Releases the lock that this thread acquired last through this object."""
        return self._latest(get_ident()).release()

    def __enter__(self) -> Guard:
        return self._enter(Guard(self._acquire(AS_SET).wait()), get_ident())

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._exit(get_ident())._leave(error)

    def __call__(self, function: F) -> F:
        """Decorates a function: each call holds the lock."""
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & 0x80:  # inspect.CO_COROUTINE
            raise TypeError("a coroutine needs a lock of leasehold.aio")

        @functools.wraps(function)
        def locked(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return cast(F, locked)


class Run(Guard):
    """A run of a request by this caller, under its lock."""

    __slots__ = ()

    def commit(self, result: bytes | str = b"") -> Done:
        """Stores the result for all other callers, and releases the lock."""
        self._forget()
        return Done(*self._native.commit(as_bytes(result)).wait())


class Once(OnceBase):
    """A request that takes effect once, no matter how often it is made."""

    __slots__ = ()

    def run(self, function: Callable[[Run], bytes | str], wait: float | None = AS_SET) -> bytes:
        """Runs `function` under the lock unless the request is done, and returns its result.

        If `function` raises, nothing is stored, and the next caller runs it again. Raises `Busy` if another caller still
        runs it when the wait ends, and `Lost` if the lock was lost.
        """
        start = self.begin(wait)
        if isinstance(start, Done):
            return start.result
        if isinstance(start, InProgress):
            raise Busy(f"another caller runs the request {self.name!r}")
        with start:
            try:
                result = function(start)
                start.ensure()
            except BaseException:
                with contextlib.suppress(LeaseholdError):  # the next caller runs a request that has begun
                    start.release()
                raise
            return start.commit(result).result

    def begin(self, wait: float | None = AS_SET) -> Run | Done | InProgress:
        """Determines whether this caller runs the request, and waits for a caller that runs it."""
        return step(Run, *self._begin(wait).wait())

    def try_begin(self) -> Run | Done | InProgress:
        """`begin` without waiting."""
        return step(Run, *self._once.try_begin().wait())

    def result(self) -> Done | None:
        """Returns the result if the request is certainly done."""
        return done(self._once.result().wait())

    def forget(self) -> bool:
        """Forgets the request, so that the next caller runs it. Returns whether there was one."""
        return cast(bool, self._once.forget().wait())


class Leadership(Guard):
    """The leadership of an election, until it is resigned or lost. A release resigns."""

    __slots__ = ()

    def __init__(self, native: _leasehold.Guard) -> None:
        super().__init__(native)
        self._watch(native.keep_announced(), lambda _: None)

    def publish(self, value: str) -> None:
        """Publishes `value` in place of the earlier one."""
        self._native.publish(value).wait()

    resign = Guard.release


class Election(ElectionBase[Leadership]):
    """An election of one leader among all candidates. `with` it leads, or campaign and observe."""

    __slots__ = ()

    def campaign(self, wait: float | None = AS_SET) -> Leadership:
        """Waits until this candidate leads."""
        return self._keep(Leadership(self._campaign(wait).wait()), get_ident())

    def leader(self) -> Leader | None:
        """Returns the current leader."""
        return _values.leader(self._election.leader().wait())

    def observe(self) -> Iterator[LeaderChange]:
        """Returns the current leader, then each change. Ends when the client is closed."""
        watch = self._election.observe()
        while True:
            change = _values.change(watch.next().wait())
            if change is None:
                return
            yield change

    def __enter__(self) -> Leadership:
        return self._enter(Leadership(self._campaign(AS_SET).wait()), get_ident())

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._exit(get_ident())._leave(error)


class Client(ClientBase[Lock, Once, Election]):
    """The locks of one store. Threads share it. `with` closes it at the end."""

    __slots__ = ()
    _lock, _once, _election = Lock, Once, Election

    def init(self) -> bool:
        """Prepares the store, as `leasehold init` does. Returns whether it changed anything."""
        return self._native.init()

    def holders(self, name: str) -> list[Holder]:
        """Returns the holders of a lock."""
        return _values.holders(self._native.holders(name).wait())

    def waiters(self, name: str) -> list[Waiter]:
        """Returns the waiters for a lock, in the order in which the store serves them."""
        return _values.waiters(self._native.waiters(name).wait())

    def list_locks(self, pattern: str = "*", limit: int = 1000) -> Listing:
        """Returns the first held locks whose names match, for example "invoices/*"."""
        return _values.listing(self._native.list_locks(pattern, limit).wait())

    def health(self) -> list[Member]:
        """Asks each server of the store whether its answers count."""
        return _values.members(self._native.health().wait())

    def break_lock(
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
        return _values.broken(self._native.break_lock(name, fence, at_once, user, reason).wait())

    def adopt(self, handle: str) -> Guard:
        """Holds the lock of a handle from now on."""
        return Guard(self._native.adopt(handle).wait())

    def renew(self, handle: str) -> str:
        """Renews the lease of a handle once, and returns the handle with its new deadline."""
        return cast(str, self._native.renew_handle(handle).wait())

    def release(self, handle: str) -> str:
        """Releases the lock of a handle, and returns the outcome."""
        return cast(str, self._native.release_handle(handle).wait())

    def close(self, limit: float = 5.0) -> None:
        """Ends all calls and waits, releases the locks, and waits for the store for at most `limit` seconds."""
        self._native.close(limit).wait()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except LeaseholdError:
            if error is None:
                raise


def connect(url: str | Sequence[str], *, label: str | None = None) -> Client:
    """Returns the locks at `url`: "redis://host", several of them as a quorum, "postgres://user@host/database",
    "etcd://a,b,c", "zk://a,b,c", "file:///folder", or "memory:" for tests. Sends nothing yet."""
    return Client(url, label=label)
