"""What happens at the end of the process, and in a forked child."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import Callable

from ._leasehold import Client, end_in_this_thread, wait_for_other_threads
from .errors import LeaseholdError

_clients: weakref.WeakSet[Client] = weakref.WeakSet()
_in_child: list[Callable[[], object]] = []
_at_end: list[Callable[[], object]] = []

EXIT_LIMIT = 2.0
"""How many seconds the end of the process may wait for the store, for each client."""


def register(client: Client) -> None:
    """Closes the client when the process ends."""
    _clients.add(client)
    _Children.register()


def in_forked_child(forget: Callable[[], object]) -> None:
    """Calls `forget` in each forked child."""
    _in_child.append(forget)


def at_end(forget: Callable[[], object]) -> None:
    """Calls `forget` at the end of the process, before the clients are closed."""
    _at_end.append(forget)


@atexit.register
def _end() -> None:
    if not any(client.is_used for client in list(_clients)):
        return
    end_in_this_thread()
    for forget in _at_end:
        forget()
    close_all()
    wait_for_other_threads(EXIT_LIMIT / 4)
    close_all()  # waits for what the other threads gave back


def close_all() -> None:
    """Closes all clients: their waits end and their locks are free, instead of after a TTL."""
    for client in list(_clients):
        if client.is_used:
            try:
                client.close(EXIT_LIMIT).wait()
            except LeaseholdError:
                pass  # the locks end with their TTL


class _Children:
    """The child processes of multiprocessing, which end without atexit."""

    registered = 0

    @classmethod
    def register(cls) -> None:
        util = sys.modules.get("multiprocessing.util")
        if util is None or cls.registered == os.getpid():
            return
        cls.registered = os.getpid()
        util.Finalize(None, close_all, exitpriority=0)
        # A child forgets all finalizers as it begins, and calls this next.
        util.register_after_fork(cls, lambda it: util.Finalize(None, close_all, exitpriority=0))


def _forget() -> None:
    for forget in _in_child:
        forget()
    _Children.register()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
