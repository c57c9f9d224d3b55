"""Losses of blocking locks, and of quorums."""

from __future__ import annotations

import threading
import time

import leasehold
import pytest

from support import Program, Redis, wait_until


def test_loss_calls_back(locks: leasehold.Client, redis: Redis, name: str) -> None:
    lost = threading.Event()
    reasons: list[str] = []
    with pytest.raises(leasehold.Lost):
        with locks.lock(name, ttl=0.6) as guard:
            guard.on_lost(lambda reason: (reasons.append(reason), lost.set()))
            redis.command("DEL", name)
            assert lost.wait(10)
    assert reasons == ["gone"]


def test_release_is_no_loss(locks: leasehold.Client, name: str) -> None:
    reasons: list[str] = []
    with locks.lock(name) as guard:
        guard.on_lost(reasons.append)
    with locks.lock(f"{name}/2") as other:
        other.on_lost(reasons.append)
        other.give_up()
        wait_until(lambda: reasons)
        with pytest.raises(leasehold.Lost):
            other.ensure()
        other.release()
    assert reasons == ["given_up"]


def test_failing_callback_is_logged(
    locks: leasehold.Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    second = threading.Event()

    def fail(_: str) -> None:
        raise ZeroDivisionError

    guard = locks.lock(name).acquire()
    guard.on_lost(fail)
    guard.on_lost(lambda _: second.set())
    guard.give_up()
    assert second.wait(10)
    assert "a callback of a lost lock failed" in caplog.text
    guard.release()


def test_set_is_lost_with_one_lock(locks: leasehold.Client, redis: Redis, name: str) -> None:
    reasons: list[str] = []
    names = [f"{name}/a", f"{name}/b"]
    with pytest.raises(leasehold.Lost) as lost:
        with locks.lock_all(names, ttl=0.6) as guard:
            guard.on_lost(reasons.append)
            redis.command("DEL", names[1])
            wait_until(lambda: reasons)
    assert lost.value.name == names[1] and reasons == ["gone"]


HOG = """
import sys, threading, time, leasehold
locks = leasehold.connect(sys.argv[1])
guard = locks.lock(sys.argv[2], ttl=1.5).acquire()
sys.setswitchinterval(60)  # this thread gives the GIL to no other one
end = time.monotonic() + 4
while time.monotonic() < end:
    sum(range(100_000))
print(guard.is_valid, guard.release())
"""


def test_hogged_gil_loses_no_lock(redis: Redis, name: str) -> None:
    code, output, errors = Program(HOG, redis.url, name).end()
    assert (code, output, errors) == (0, "True released\n", "")


def test_quorum_reports_a_loss_of_its_majority(name: str) -> None:
    servers = [Redis() for _ in range(3)]
    try:
        urls = [server.url for server in servers]
        with leasehold.connect(urls) as locks:
            assert locks.init()
            lock = locks.lock(name, ttl=3)
            with pytest.raises(leasehold.Lost) as lost:
                with lock as guard:
                    for server in servers[1:]:
                        server.freeze()
                    began = time.monotonic()
                    wait_until(lambda: not guard.is_valid)
                    assert time.monotonic() - began < 3
            assert lost.value.reason == "unreachable"
            with pytest.raises(leasehold.Unavailable) as unavailable:
                lock.acquire(wait=0.5)
            assert unavailable.value.kind == "no_quorum"
            assert len(unavailable.value.members) == 2
            for server in servers[1:]:
                server.thaw()
    finally:
        for server in servers:
            server.stop()
