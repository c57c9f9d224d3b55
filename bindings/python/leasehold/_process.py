"""What happens at the end of the process, and in a forked child."""

from __future__ import annotations

import atexit
import os
import select
import sys
import weakref
from typing import Callable

from ._leasehold import Client, EventLoop, end_in_this_thread, wait_for_other_threads

_clients: weakref.WeakSet[Client] = weakref.WeakSet()
_in_child: list[Callable[[], object]] = []
_at_end: list[Callable[[], object]] = []

EXIT_LIMIT = 2.0
"""How many seconds the end of the process waits for the stores."""


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
    close_all(EXIT_LIMIT / 4)  # waits for what the other threads gave back


def close_all(limit: float = EXIT_LIMIT) -> None:
    """Closes all clients at once: their waits end and their locks are free, instead of after a TTL."""
    calls, answers = EventLoop(), select.poll()
    answers.register(calls.fileno(), select.POLLIN)
    closing = [_Closing(client, limit, calls) for client in list(_clients) if client.is_used]
    while not all(it.has_ended for it in closing):
        answers.poll()
        calls.run()


class _Closing:
    """A client that is being closed: stands for the future of its answer."""

    def __init__(self, client: Client, limit: float, calls: EventLoop) -> None:
        self.has_ended = False
        client.close(limit).start(calls, self)

    def done(self) -> bool:
        return self.has_ended

    def set_result(self, result: object) -> None:
        self.has_ended = True

    def set_exception(self, error: BaseException) -> None:
        self.has_ended = True  # its locks end with their TTL


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
