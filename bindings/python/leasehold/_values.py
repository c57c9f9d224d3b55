"""What clients show of locks. All times are seconds: spans, or since 1970."""

from __future__ import annotations

from typing import Any, NamedTuple

from .errors import LeaseholdError, from_fields


class ClientInfo(NamedTuple):
    """A client's description of itself."""

    id: str
    host: str
    pid: int
    program: str
    user: str | None
    label: str | None
    command: str | None


class Holder(NamedTuple):
    """A holder of a lock."""

    text: str
    """A description, for people."""
    mode: str
    """"exclusive", "shared" or "permit"."""
    permits: int | None
    owner: str | None
    client: ClientInfo | None
    fence: int | None
    since: float | None
    remaining: float | None
    """The time left until the lease ends, unless the holder renews it."""
    broken: bool
    """Whether an operator broke the lease."""


class Waiter(NamedTuple):
    """A waiter for a lock."""

    text: str
    mode: str
    permits: int | None
    owner: str
    client: ClientInfo | None
    since: float


class ListedLock(NamedTuple):
    """A held lock."""

    name: str
    holders: list[Holder]


class Listing(NamedTuple):
    """Held locks, sorted by name."""

    locks: list[ListedLock]
    more: bool
    """Whether there are more locks than the limit."""
    has_majority: bool
    """Whether a majority of the members answered."""


class Member(NamedTuple):
    """A server of the store, and whether its answers count."""

    id: str
    has_vote: bool
    durable: bool
    error: LeaseholdError | None
    eligible_after: float | None


class Break(NamedTuple):
    """The outcome of `break_lock`: "done", "free", or "held_by" other holders."""

    outcome: str
    closed_for: float | None
    """How much longer the lock stays closed."""
    holders: list[Holder]


class Done(NamedTuple):
    """The committed result of a request."""

    result: bytes
    fence: int
    remaining: float
    """How much longer the store keeps the result."""


class InProgress(NamedTuple):
    """Another caller runs the request."""

    holder: Holder | None


class Leader(NamedTuple):
    """The leader of an election."""

    owner: str
    client: ClientInfo | None
    fence: int
    value: str
    since: float


class LeaderChange(NamedTuple):
    """A change of an election. Without a leader and an error, there is no leader."""

    leader: Leader | None
    error: LeaseholdError | None
    """Why the leader is not known."""


def _client(fields: dict[str, Any]) -> dict[str, Any]:
    client = fields["client"]
    return fields if client is None else {**fields, "client": ClientInfo(**client)}


def holder(fields: dict[str, Any]) -> Holder:
    return Holder(**_client(fields))


def holders(fields: list[dict[str, Any]]) -> list[Holder]:
    return [holder(it) for it in fields]


def waiters(fields: list[dict[str, Any]]) -> list[Waiter]:
    return [Waiter(**_client(it)) for it in fields]


def listing(fields: dict[str, Any]) -> Listing:
    locks = [ListedLock(it["name"], holders(it["holders"])) for it in fields["locks"]]
    return Listing(locks, fields["more"], fields["has_majority"])


def members(fields: list[dict[str, Any]]) -> list[Member]:
    return [Member(**_error(it)) for it in fields]


def broken(fields: dict[str, Any]) -> Break:
    return Break(fields["outcome"], fields["closed_for"], holders(fields["holders"]))


def leader(fields: dict[str, Any] | None) -> Leader | None:
    return None if fields is None else Leader(**_client(fields))


def change(fields: dict[str, Any] | None) -> LeaderChange | None:
    if fields is None:
        return None
    return LeaderChange(leader(fields["leader"]), _error(fields)["error"])


def _error(fields: dict[str, Any]) -> dict[str, Any]:
    error = fields["error"]
    return fields if error is None else {**fields, "error": from_fields(error)}
