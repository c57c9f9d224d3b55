"""The exceptions. The class says what to do, and the attributes say what happened."""

from __future__ import annotations

from typing import Any

__all__ = [
    "Busy", "Closed", "Fenced", "Forked", "InvalidInput", "LeaseholdError", "Lost", "NotPrepared", "Refused",
    "Unavailable", "Unsupported",
]


class LeaseholdError(Exception):
    """The base class of all exceptions of this package."""

    kind: str = "other"
    """The kind of the error, for programs: "busy", "no_quorum", "max_hold"."""
    name: str | None = None
    """The name of the lock."""
    store: str | None = None
    """The store, without credentials."""
    reason: str | None = None
    """Why the lock was lost: "expired", "unreachable", "taken", "gone", "broken", "max_hold", "closed"."""
    holder: str | None = None
    """The identity of the client that holds the lock."""
    members: list[tuple[str, str]] = []
    """The members of a quorum that failed, each with its error."""
    retryable: bool = False
    """Whether the same call may succeed later."""
    effect_unknown: bool = False
    """Whether the call may have taken effect."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Celery and multiprocessing pickle exceptions.
        return from_fields, ({**self.__dict__, "text": str(self)}, type(self))


class Busy(LeaseholdError, TimeoutError):
    """Another client still held the lock when the wait ended."""

    kind = "busy"


class Lost(LeaseholdError):
    """The lock is no longer held, or not for as long as was asked for."""


class Unavailable(LeaseholdError, ConnectionError):
    """The store, or too many members of a quorum, did not answer."""


class NotPrepared(LeaseholdError):
    """The store needs `leasehold init` first."""


class Refused(LeaseholdError, PermissionError):
    """The store refused the password, a permission is missing, or a certificate is not trusted."""


class Fenced(LeaseholdError):
    """A resource has seen a later holder."""


class Forked(LeaseholdError, RuntimeError):
    """The guard belongs to the parent of this process."""


class Closed(LeaseholdError, RuntimeError):
    """The client was closed, or the guard was released before."""

    kind = "closed"


class InvalidInput(LeaseholdError, ValueError):
    """A value breaks a rule. Nothing was sent."""


class Unsupported(LeaseholdError):
    """This store cannot do that."""


_CLASSES: dict[str, type[LeaseholdError]] = {
    "busy": Busy,
    "closed": Closed,
    "fenced": Fenced,
    "forked": Forked,
    "invalid_input": InvalidInput,
    "invalid_response": Unavailable,
    "lost": Lost,
    "no_quorum": Unavailable,
    "not_initialized": NotPrepared,
    "permits_differ": InvalidInput,
    "refused": Refused,
    "unreachable": Unavailable,
    "unsupported": Unsupported,
    "untrusted": Unavailable,
}


def from_fields(
    fields: dict[str, Any], of: type[LeaseholdError] | None = None
) -> LeaseholdError:
    """Makes the exception of an error of the native part, or of a pickled one."""
    fields = dict(fields)
    text = fields.pop("text")
    error = (of or _CLASSES.get(fields.get("kind", ""), LeaseholdError))(text)
    if "members" in fields:
        fields["members"] = [(member, why) for member, why in fields["members"]]
    error.__dict__.update(fields)
    return error
