"""Holders, waiters, listings, breaks, handles and health."""

from __future__ import annotations

import threading

import leasehold
import pytest

from support import Redis, Program, wait_until


def test_holder_describes_itself(redis: Redis, locks: leasehold.Client, name: str) -> None:
    with leasehold.connect(redis.url, label="billing") as client:
        with client.lock(name, ttl=20) as guard:
            (holder,) = locks.holders(name)
            assert holder.fence == guard.fence and holder.owner == guard.owner
            assert holder.mode == "exclusive" and holder.remaining and holder.remaining <= 20
            assert holder.client and holder.client.label == "billing"
            assert holder.client.program == "python" and "billing" in holder.text


def test_permit_holder_shows_its_number(locks: leasehold.Client, name: str) -> None:
    with locks.semaphore(name, 3):
        (holder,) = locks.holders(name)
        assert (holder.mode, holder.permits) == ("permit", 3)


def test_waiters_are_listed_in_order(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    def wait(number: int) -> None:
        with others.lock(name):
            served.append(number)

    served: list[int] = []
    with locks.lock(name):
        threads = []
        for number in range(3):
            threads.append(threading.Thread(target=wait, args=(number,)))
            threads[-1].start()
            wait_until(lambda: len(locks.waiters(name)) == len(threads))
        waiters = locks.waiters(name)
        assert [it.since for it in waiters] == sorted(it.since for it in waiters)
    for thread in threads:
        thread.join()
    assert served == [0, 1, 2]


def test_listing_follows_pattern_and_limit(locks: leasehold.Client, name: str) -> None:
    with locks.lock_all([f"{name}/{letter}" for letter in "abc"]):
        listing = locks.list_locks(f"{name}/*", limit=2)
        assert [it.name for it in listing.locks] == [f"{name}/a", f"{name}/b"]
        assert listing.more and listing.has_majority
        assert locks.list_locks("no such*").locks == []


def test_broken_lock_is_lost_and_free(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    guard = locks.lock(name).acquire()
    assert others.break_lock(name, guard.fence + 1).outcome == "held_by"
    outcome = others.break_lock(name, guard.fence, at_once=True, user="ann", reason="hangs")
    assert outcome.outcome == "done"
    others.lock(name).acquire(wait=5).release()
    with pytest.raises(leasehold.Lost) as lost:
        guard.renew()
    assert lost.value.reason == "broken"
    guard.release()
    assert others.break_lock(name, guard.fence).outcome == "free"


def test_health_names_each_member(locks: leasehold.Client, redis: Redis) -> None:
    (member,) = locks.health()
    assert member.has_vote and member.error is None and str(redis.port) in member.id


def test_health_of_a_stopped_server() -> None:
    with leasehold.connect("redis://127.0.0.1:1") as client:
        (member,) = client.health()
        assert not member.has_vote and isinstance(member.error, leasehold.Unavailable)


def test_handle_passes_a_lock_on(redis: Redis, locks: leasehold.Client, name: str) -> None:
    guard = locks.lock(name).acquire()
    handle = guard.into_handle()
    assert locks.lock(name).try_acquire() is None
    text = (
        "import sys, leasehold; c = leasehold.connect(sys.argv[1]); g = c.adopt(sys.argv[2]);"
        "print(g.fence, g.release())"
    )
    code, output, errors = Program(text, redis.url, handle).end()
    assert (code, output, errors) == (0, f"{guard.fence} released\n", "")


def test_handle_is_renewed_and_released(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    handle = others.renew(locks.lock(name).acquire().into_handle())
    assert others.release(handle) == "released"
    assert others.release(handle) == "was_lost"
    locks.lock(name).acquire(wait=5).release()


def test_handle_of_held_guard_releases_it(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    guard = locks.lock(name).acquire()
    assert others.release(guard.handle()) == "released"
    assert guard.release() == "was_lost"


def test_damaged_handle_is_invalid(locks: leasehold.Client) -> None:
    with pytest.raises(leasehold.InvalidInput, match="handle"):
        locks.adopt("lh1_00")
