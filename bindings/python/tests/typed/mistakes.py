"""Mistakes that type checkers must find: an ignored error that is not there is an error."""

import leasehold
from leasehold import aio

locks = leasehold.connect("redis://a")
locks.lock("a", timeout=5)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
locks.lock("a", ttl="5s")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
locks.lock(5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
locks.semaphore("a")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
locks.lock("a").try_acquire().fence  # type: ignore[union-attr] # pyright: ignore
fence: str = locks.lock("a").acquire().fence  # type: ignore[assignment] # pyright: ignore[reportAssignmentType]


async def mistakes(client: aio.Client) -> None:
    with client.lock("a"):  # type: ignore[attr-defined] # pyright: ignore
        pass
    client.lock("a").acquire().fence  # type: ignore[attr-defined] # pyright: ignore


@aio.connect("redis://a").lock("a")  # type: ignore[type-var] # pyright: ignore[reportArgumentType]
def job() -> None: ...
