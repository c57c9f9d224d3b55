"""Distributed locks as leases, with fencing tokens.

>>> import leasehold
>>> locks = leasehold.connect("redis://localhost")
>>> with locks.lock("report", wait=5) as guard:
...     write_report(fence=guard.fence)

`leasehold.aio` has the same names for asyncio.
"""

from ._blocking import Client, Election, Guard, Leadership, Lock, Once, Run, connect
from ._values import (
    Break, ClientInfo, Done, Holder, InProgress, Leader, LeaderChange, ListedLock, Listing, Member, Waiter,
)
from .errors import (
    Busy, Closed, Fenced, Forked, InvalidInput, LeaseholdError, Lost, NotPrepared, Refused, Unavailable,
    Unsupported,
)

__version__ = "0.1.0"

__all__ = [
    "Break", "Busy", "Client", "ClientInfo", "Closed", "Done", "Election", "Fenced", "Forked", "Guard",
    "Holder", "InProgress", "InvalidInput", "Leader", "LeaderChange", "Leadership", "LeaseholdError",
    "ListedLock", "Listing", "Lock", "Lost", "Member", "NotPrepared", "Once", "Refused", "Run", "Unavailable",
    "Unsupported", "Waiter", "connect",
]
