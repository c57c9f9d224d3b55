"""What the blocking locks and those of asyncio share."""

from __future__ import annotations

import warnings
import weakref
from typing import Any, Callable, Generic, Sequence, TypeVar

from . import _leasehold, _process
from ._values import Done, InProgress, holder
from .errors import Closed

AS_SET: Any = object()
"""Stands for the `wait` of the lock."""


class GuardBase:
    """A held lock, until it is released or lost."""

    __slots__ = ("_native", "_keeper", "__weakref__")

    def __init__(self, native: _leasehold.Guard) -> None:
        self._native = native
        self._keeper: tuple[weakref.ref[Keeper[Any]], object] | None = None

    @property
    def name(self) -> str:
        """The name of the lock, or of the first one of a set."""
        return self._native.name

    @property
    def fence(self) -> int:
        """The fencing token, greater than that of every earlier holder. Of a set, see `fences`."""
        return self._native.fence

    @property
    def fences(self) -> dict[str, int]:
        """The name and the fence of each lock."""
        return self._native.fences

    @property
    def owner(self) -> str:
        """The identity of this hold at the store, as `holders` shows it. Of a set, that of the first lock."""
        return self._native.owner

    @property
    def is_valid(self) -> bool:
        """Whether the lock is held at this instant. Once false, it stays false."""
        return self._native.is_valid

    @property
    def remaining(self) -> float:
        """The seconds left until the deadline, which each renewal moves."""
        return self._native.remaining

    @property
    def lost_reason(self) -> str | None:
        """Why the lock was lost; `None` while it is held, and after a release."""
        return self._native.lost_reason

    def ensure(self, seconds: float = 0.0) -> None:
        """Raises `Lost` unless the lock is held for that long, even if every renewal fails."""
        self._native.ensure(seconds)

    def give_up(self) -> None:
        """Makes the guard lost. The lock stays unavailable until the guard is released."""
        self._native.give_up()

    def handle(self) -> str:
        """Returns a secret text with which any process can release the lock."""
        return self._native.handle()

    def into_handle(self) -> str:
        """Leaves the lock held without renewals, and returns a secret text for `Client.adopt`."""
        handle = self._native.detach()
        self._forget()
        return handle

    def _forget(self) -> None:
        """The guard is released: nothing watches or keeps it any longer."""
        if self._keeper is not None:
            (keeper, key), self._keeper = self._keeper, None
            lock = keeper()
            if lock is not None:
                lock._drop(key, self)

    def _discard(self) -> None:
        self._forget()
        self._native.discard()

    def __del__(self) -> None:
        native = getattr(self, "_native", None)
        if native is None or native.is_released:
            return
        is_held = native.is_valid
        self._discard()
        if is_held:
            # RuntimeWarning, as for a coroutine that is never awaited: Python hides a ResourceWarning.
            text = (
                f"the guard of {native.name!r} was dropped, and its lock is free: bind it to a name"
                " and release it, or use `with`"
            )
            warnings.warn(text, RuntimeWarning, stacklevel=2)

    def __reduce__(self) -> Any:
        raise TypeError("a guard belongs to its process: pass on the text of into_handle()")

    def __repr__(self) -> str:
        native = self._native
        state = "released" if native.is_released else native.lost_reason or "held"
        return f"<{type(self).__module__}.{type(self).__name__} {self.name!r} {self.fence} {state}>"


G = TypeVar("G", bound=GuardBase)


class Keeper(Generic[G]):
    """Keeps the guards that a thread or a task acquired, so that a guard without a name stays held."""

    __slots__ = ("_kept", "_entered", "__weakref__")

    def __init__(self) -> None:
        self._kept: dict[object, list[G]] = {}
        self._entered: dict[object, list[G]] = {}

    def _keep(self, guard: G, key: object) -> G:
        self._kept.setdefault(key, []).append(guard)
        guard._keeper = weakref.ref(self), key
        return guard

    def _drop(self, key: object, guard: GuardBase) -> None:
        kept = [it for it in self._kept.pop(key, ()) if it is not guard]
        if kept:
            self._kept[key] = kept

    def _latest(self, key: object) -> G:
        kept = self._kept.get(key)
        if not kept:
            raise Closed("this lock is not held here: nothing acquired it, or it was released")
        return kept[-1]

    def _enter(self, guard: G, key: object) -> G:
        self._entered.setdefault(key, []).append(guard)
        return guard

    def _exit(self, key: object) -> G:
        guards = self._entered[key]
        guard = guards.pop()
        if not guards:
            del self._entered[key]
        return guard


class LockBase(Keeper[G]):
    """A lock with its options. One object serves any number of threads or tasks."""

    __slots__ = ("name", "_request", "_wait")

    def __init__(self, name: str, request: _leasehold.Request, wait: float | None) -> None:
        super().__init__()
        self.name = name
        self._request = request
        self._wait = wait

    def _acquire(self, wait: float | None) -> _leasehold.Operation:
        return self._request.acquire(self._wait if wait is AS_SET else wait)


class OnceBase:
    """A request that takes effect once, no matter how often it is made."""

    __slots__ = ("name", "_once", "_wait")

    def __init__(self, name: str, once: _leasehold.Once, wait: float | None) -> None:
        self.name = name
        self._once = once
        self._wait = wait

    def _begin(self, wait: float | None) -> _leasehold.Operation:
        return self._once.begin(self._wait if wait is AS_SET else wait)


class ElectionBase(Keeper[G]):
    """An election of one leader among all candidates."""

    __slots__ = ("name", "_election", "_wait")

    def __init__(self, name: str, election: _leasehold.Election, wait: float | None) -> None:
        super().__init__()
        self.name = name
        self._election = election
        self._wait = wait

    def _campaign(self, wait: float | None) -> _leasehold.Operation:
        return self._election.campaign(self._wait if wait is AS_SET else wait)


L = TypeVar("L", bound="LockBase[Any]")
O = TypeVar("O", bound=OnceBase)
E = TypeVar("E", bound="ElectionBase[Any]")
R = TypeVar("R", bound=GuardBase)


class ClientBase(Generic[L, O, E]):
    """The locks of one store.

    It starts no thread and sends nothing before its first call, and opens again in a forked child.
    """

    __slots__ = ("_native",)
    _lock: type[L]
    _once: type[O]
    _election: type[E]

    def __init__(self, url: str | Sequence[str], *, label: str | None = None) -> None:
        address = url if isinstance(url, str) else ",".join(url)
        self._native = _leasehold.Client(address, label)
        _process.register(self._native)

    def lock(
        self,
        name: str,
        *,
        ttl: float | None = None,
        wait: float | None = None,
        max_hold: float | None = None,
        shared: bool = False,
        lock_delay: float | None = None,
        barging: bool = False,
    ) -> L:
        """Returns the lock called `name`, to be acquired. All times are in seconds.

        ttl: how long the lock stays unavailable after its holder died (default 30).
        wait: the longest time to wait for the lock (default: without an end).
        max_hold: the longest time to hold it, even if the holder is alive.
        shared: other readers may hold the lock at the same time.
        lock_delay: how much longer the lock stays unavailable after an unclean end.
        barging: acquires ahead of the queue.
        """
        options = (ttl, max_hold, lock_delay, shared, barging)
        return self._lock(name, self._native.request(name, 0, options), wait)

    def semaphore(
        self,
        name: str,
        permits: int,
        *,
        ttl: float | None = None,
        wait: float | None = None,
        max_hold: float | None = None,
        lock_delay: float | None = None,
        barging: bool = False,
    ) -> L:
        """Returns the lock called `name` with this many permits, to acquire one. See `lock`."""
        if permits < 1:
            raise ValueError(f"a semaphore has at least one permit, not {permits}")
        options = (ttl, max_hold, lock_delay, False, barging)
        return self._lock(name, self._native.request(name, permits, options), wait)

    def lock_all(
        self,
        names: Sequence[str],
        *,
        ttl: float | None = None,
        wait: float | None = None,
        max_hold: float | None = None,
        shared: bool = False,
        lock_delay: float | None = None,
        barging: bool = False,
    ) -> L:
        """Returns the locks of these names, to be acquired together: all or none. See `lock`."""
        options = (ttl, max_hold, lock_delay, shared, barging)
        request = self._native.request(list(names), 0, options)
        return self._lock(", ".join(names), request, wait)

    def once(
        self,
        name: str,
        *,
        payload: bytes | str = b"",
        retention: float | None = None,
        ttl: float | None = None,
        wait: float | None = None,
        max_hold: float | None = None,
    ) -> O:
        """Returns the request called `name`, which takes effect once.

        payload: what is asked for; another payload under the same name is an error.
        retention: how many seconds the store keeps the result (default: a day).
        """
        options = (ttl, max_hold, None, False, False)
        once = self._native.once(name, as_bytes(payload), retention, options)
        return self._once(name, once, wait)

    def election(
        self,
        name: str,
        *,
        value: str = "",
        ttl: float | None = None,
        wait: float | None = None,
        max_hold: float | None = None,
        poll_interval: float | None = None,
    ) -> E:
        """Returns the election called `name`.

        value: what the leader publishes, for example its address.
        poll_interval: the pause between two reads of an observer (default 1).
        """
        options = (ttl, max_hold, None, False, False)
        election = self._native.election(name, value, poll_interval, options)
        return self._election(name, election, wait)

    def __reduce__(self) -> Any:
        return _connect, (type(self), self._native.url, self._native.label)

    def __repr__(self) -> str:
        import re

        address = re.sub(r"//[^@/,]*@", "//", self._native.url)
        return f"<{type(self).__module__}.{type(self).__name__} {address}>"


def _connect(of: type[Any], url: str, label: str | None) -> Any:
    return of(url, label=label)


def as_bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text


def done(fields: tuple[bytes, int, float] | None) -> Done | None:
    return None if fields is None else Done(*fields)


def step(run: Callable[[Any], R], state: str, of: Any) -> R | Done | InProgress:
    """Returns the state of a request for one caller, which may be `run` of its guard."""
    if state == "run":
        return run(of)
    if state == "done":
        return Done(*of)
    return InProgress(None if of is None else holder(of))
