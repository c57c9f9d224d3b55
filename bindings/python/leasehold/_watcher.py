"""The thread that waits for the losses of the blocking locks. It begins with the first `on_lost`."""

from __future__ import annotations

import collections
import select
import threading
from typing import Any, Callable

from . import _leasehold, _process

_event_loop: _leasehold.EventLoop | None = None
_begin = threading.Lock()
_ended: collections.deque[tuple[Callable[[Any], object], Any]] = collections.deque()


class _Done:
    """Stands for the future that an asyncio loop would complete."""

    __slots__ = ("_callback",)

    def __init__(self, callback: Callable[[Any], object]) -> None:
        self._callback = callback

    def done(self) -> bool:
        return False

    def set_result(self, result: Any) -> None:
        _ended.append((self._callback, result))

    def set_exception(self, error: BaseException) -> None:
        """The client was closed or forked: there is nothing left to watch."""


def watch(operation: _leasehold.Operation, callback: Callable[[Any], object]) -> _leasehold.Call:
    """Calls `callback` with the answer, in the thread of the watcher."""
    call = operation.start(_running(), _Done(callback))
    _call_back()  # if it ended at once
    return call


def _call_back() -> None:
    """Calls what the native part completed. It calls none itself: the end of the interpreter may stop this thread here."""
    while _ended:
        callback, result = _ended.popleft()
        try:
            callback(result)
        except Exception:
            import logging

            logging.getLogger("leasehold").exception("a callback of a lost lock failed")


def _running() -> _leasehold.EventLoop:
    global _event_loop
    with _begin:
        if _event_loop is None:
            _event_loop = _leasehold.EventLoop()
            # A daemon, since it waits for losses that may never come.
            thread = threading.Thread(target=_run, args=(_event_loop,), name="leasehold", daemon=True)
            thread.start()
        return _event_loop


def _run(event_loop: _leasehold.EventLoop) -> None:
    answers = select.poll()
    answers.register(event_loop.fileno(), select.POLLIN)
    while True:
        answers.poll()
        event_loop.run()
        _call_back()


def _forget() -> None:
    global _event_loop, _begin
    _event_loop, _begin = None, threading.Lock()
    _ended.clear()


def _end_calls() -> None:
    if _event_loop is not None:
        _event_loop.clear()


_process.in_forked_child(_forget)
_process.at_end(_end_calls)
