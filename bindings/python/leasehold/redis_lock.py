"""`redis.lock.Lock` on Leasehold: `redis.lock("name", lock_class=leasehold.redis_lock.Lock)`.

It has the arguments, results and exceptions of redis-py's lock, and excludes it on the same keys. It renews the lock while
its holder lives, serves waiters in order, and has a fence. `AsyncLock` is the lock of `redis.asyncio`.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Literal
from urllib.parse import quote

import redis.asyncio.lock
import redis.lock
from redis.exceptions import AuthenticationError, ConnectionError, LockError, LockNotOwnedError

from . import _blocking, aio
from .errors import Busy, LeaseholdError, Lost, Refused, Unavailable

__all__ = ["AsyncLock", "Lock"]

_clients: dict[tuple[type[Any], str], Any] = {}


class Lock(redis.lock.Lock):
    """redis-py's lock, renewed while its holder lives. `timeout` is the TTL of its lease (default 30)."""

    def __init__(self, redis: Any, name: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(redis, name, *args, **kwargs)
        self._lock = _client(_blocking.Client, redis).lock(_text(name), ttl=self.timeout)
        self._guards: dict[Any, _blocking.Guard] = {}

    def register_scripts(self) -> None:
        """Leasehold has scripts of its own."""

    @property
    def guard(self) -> _blocking.Guard | None:
        """The guard of the lock that this thread holds, with its `fence`."""
        return self._guards.get(self.local.token)

    def acquire(
        self,
        sleep: float | None = None,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: Any = None,
    ) -> bool:
        """Acquires the lock, and returns whether it did. It does not poll, so `sleep` has no effect."""
        _refuse_token(token)
        with _as_redis(self):
            guard = (
                self._lock._request.acquire(_wait(self, blocking_timeout)).wait()
                if _blocks(self, blocking)
                else self._lock._request.try_acquire().wait()
            )
            if guard is None:
                return False
            self.local.token = _token(guard)
            self._guards[self.local.token] = _blocking.Guard(guard)
            return True
        return False

    def do_release(self, expected_token: Any) -> None:
        with _as_redis(self, "release"):
            guard = self._guards.pop(expected_token, None)
            if guard is None or guard.release() != "released":
                raise Lost("it was released before, or its lease has ended")

    def do_extend(self, additional_time: float, replace_ttl: bool) -> Literal[True]:
        return self.do_reacquire()

    def do_reacquire(self) -> Literal[True]:
        with _as_redis(self, "reacquire"):
            self._guards[self.local.token].renew()
        return True


class AsyncLock(redis.asyncio.lock.Lock):
    """The lock of `redis.asyncio`, renewed while its holder lives."""

    def __init__(self, redis: Any, name: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(redis, name, *args, **kwargs)
        self._lock = _client(aio.Client, redis).lock(_text(name), ttl=self.timeout)
        self._guards: dict[Any, aio.Guard] = {}

    def register_scripts(self) -> None:
        """Leasehold has scripts of its own."""

    @property
    def guard(self) -> aio.Guard | None:
        """The guard of the lock that this task holds, with its `fence`."""
        return self._guards.get(self.local.token)

    async def acquire(
        self,
        blocking: bool | None = None,
        blocking_timeout: float | None = None,
        token: Any = None,
    ) -> bool:
        """Acquires the lock, and returns whether it did."""
        _refuse_token(token)
        with _as_redis(self):
            guard = await aio.run(
                self._lock._request.acquire(_wait(self, blocking_timeout))
                if _blocks(self, blocking)
                else self._lock._request.try_acquire()
            )
            if guard is None:
                return False
            self.local.token = _token(guard)
            self._guards[self.local.token] = aio.Guard(guard)
            return True
        return False

    async def do_release(self, expected_token: Any) -> None:
        with _as_redis(self, "release"):
            guard = self._guards.pop(expected_token, None)
            if guard is None or await guard.release() != "released":
                raise Lost("it was released before, or its lease has ended")

    async def do_extend(self, additional_time: float, replace_ttl: bool = False) -> Literal[True]:
        return await self.do_reacquire()

    async def do_reacquire(self) -> Literal[True]:
        with _as_redis(self, "reacquire"):
            await self._guards[self.local.token].renew()
        return True


def _client(of: Any, redis: Any) -> Any:
    """Returns the client of the server that `redis` is connected to."""
    pool = getattr(redis, "connection_pool", None)
    at = getattr(pool, "connection_kwargs", None)
    if pool is None or at is None or "service_name" in vars(pool):
        raise TypeError("leasehold.redis_lock needs the client of one Redis server")
    url = _url(at, pool.connection_class.__name__)
    return _clients.setdefault((of, url), of(url, label="redis-py"))


def _url(at: dict[str, Any], connection: str) -> str:
    user, password = at.get("username") or "", at.get("password") or ""
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if password else ""
    if "path" in at:
        return f"unix://{login}{quote(at['path'])}?db={at.get('db') or 0}"
    scheme = "rediss" if "SSL" in connection else "redis"
    host = at.get("host", "localhost")
    host = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{login}{host}:{at.get('port', 6379)}/{at.get('db') or 0}"
    files = {"ca": "ssl_ca_certs", "cert": "ssl_certfile", "key": "ssl_keyfile"}
    given = [f"{name}={quote(at[of])}" for name, of in files.items() if at.get(of)]
    return f"{url}?{'&'.join(given)}" if given else url


def _refuse_token(token: Any) -> None:
    if token is not None:
        text = "leasehold chooses the token of a lock; pass a lock on with into_handle() and adopt()"
        raise TypeError(text)


def _blocks(lock: Any, blocking: bool | None) -> bool:
    return bool(lock.blocking if blocking is None else blocking)


def _wait(lock: Any, limit: float | None) -> float | None:
    wait: float | None = lock.blocking_timeout if limit is None else limit
    return wait


def _text(name: Any) -> str:
    return bytes(name).decode() if isinstance(name, (bytes, memoryview)) else str(name)


def _token(guard: Any) -> bytes:
    owner: str = guard.owner
    return owner.encode()


@contextlib.contextmanager
def _as_redis(lock: Any, what: str = "") -> Iterator[None]:
    """Turns exceptions into those of redis-py. A busy lock is no exception there."""
    try:
        yield
    except Busy:
        pass
    except Lost as error:
        text = f"Cannot {what} a lock that's no longer owned"
        raise LockNotOwnedError(text, lock_name=_text(lock.name)) from error
    except Refused as error:
        raise AuthenticationError(str(error)) from error
    except Unavailable as error:
        raise ConnectionError(str(error)) from error
    except LeaseholdError as error:
        raise LockError(str(error), lock_name=_text(lock.name)) from error
