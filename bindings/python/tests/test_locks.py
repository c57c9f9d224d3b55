"""Blocking locks."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import threading

import leasehold
import pytest

from support import Redis, wait_until


def test_block_holds_and_frees(locks: leasehold.Client, redis: Redis, name: str) -> None:
    with locks.lock(name) as guard:
        assert guard.is_valid and 0 < guard.remaining <= 30
        assert redis.value(name) == guard.owner
    assert redis.value(name) is None
    assert not guard.is_valid and guard.lost_reason is None


def test_fences_grow(locks: leasehold.Client, name: str) -> None:
    fences = []
    for _ in range(5):
        with locks.lock(name) as guard:
            fences.append(guard.fence)
    assert fences == sorted(set(fences))


def test_busy_lock_is_none_or_raises(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    with locks.lock(name) as guard:
        assert others.lock(name).try_acquire() is None
        with pytest.raises(leasehold.Busy) as busy:
            others.lock(name, wait=0.02).acquire()
        assert busy.value.name == name and busy.value.kind == "busy"
        assert busy.value.holder == locks.holders(name)[0].client.id  # type: ignore[union-attr]
        assert not busy.value.effect_unknown and busy.value.retryable
        with pytest.raises(TimeoutError):
            others.lock(name).acquire(wait=0)
        guard.ensure(5)


def test_wait_of_call_replaces_that_of_lock(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    with locks.lock(name):
        with pytest.raises(leasehold.Busy):
            others.lock(name, wait=60).acquire(wait=0.01)


def test_readers_share_and_exclude_writers(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    with locks.lock(name, shared=True), others.lock(name, shared=True):
        assert others.lock(name).try_acquire() is None


def test_downgrade_lets_readers_in(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    with locks.lock(name) as guard:
        assert others.lock(name, shared=True).try_acquire() is None
        guard.downgrade()
        with others.lock(name, shared=True, wait=5):
            pass


def test_semaphore_has_its_permits(locks: leasehold.Client, name: str) -> None:
    permits = locks.semaphore(name, 2)
    with permits, permits:
        assert permits.try_acquire() is None
        with pytest.raises(leasehold.InvalidInput):
            locks.semaphore(name, 3).acquire()
    with permits:
        pass
    with pytest.raises(ValueError):
        locks.semaphore(name, 0)


def test_set_holds_all_or_none(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    names = [f"{name}/b", f"{name}/a"]
    with locks.lock_all(names, wait=5) as guard:
        assert list(guard.fences) == sorted(names)
        assert others.lock(names[0]).try_acquire() is None
        assert others.lock_all([f"{name}/c", names[0]]).try_acquire() is None
    with others.lock(f"{name}/c", wait=5), others.lock_all(names, wait=5):
        pass


def test_reentered_lock_is_free_at_last_release(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    guard = locks.lock(name).acquire()
    again = guard.reenter()
    assert again.fence == guard.fence
    assert guard.release() == "still_held"
    assert others.lock(name).try_acquire() is None
    assert again.release() == "released"


def test_decorated_function_runs_under_the_lock(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    @locks.lock(name)
    def job(number: int) -> int:
        assert others.lock(name).try_acquire() is None
        return number + 1

    assert job(1) == 2 and job.__name__ == "job"
    with others.lock(name, wait=5):
        pass


def test_blocking_lock_refuses_a_coroutine(locks: leasehold.Client, name: str) -> None:
    async def job() -> None: ...

    with pytest.raises(TypeError, match="leasehold.aio"):
        locks.lock(name)(job)


def test_one_lock_object_serves_threads(locks: leasehold.Client, name: str) -> None:
    lock, inside, most, total = locks.lock(name), [0], [0], [0]

    def work() -> None:
        for _ in range(25):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                total[0] += 1
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (total[0], most[0]) == (400, 1)


def test_lock_keeps_what_it_acquired(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    lock = locks.lock(name)
    lock.acquire()
    gc.collect()
    assert others.lock(name).try_acquire() is None
    assert lock.release() == "released"
    with pytest.raises(leasehold.Closed, match="not held here"):
        lock.release()
    assert others.lock(name, wait=5).acquire().release() == "released"


def test_dropped_guard_warns_and_frees(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    with pytest.warns(RuntimeWarning, match=f"the guard of '{name}' was dropped"):
        locks.lock(name).acquire()
        gc.collect()
    others.lock(name).acquire(wait=5).release()


def test_released_guard_says_so(locks: leasehold.Client, name: str) -> None:
    guard = locks.lock(name).acquire()
    guard.release()
    for call in (guard.release, guard.ensure, guard.renew, guard.reenter):
        with pytest.raises(leasehold.Closed, match="released before"):
            call()
    assert guard.remaining == 0


def test_error_of_the_block_wins(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    with pytest.raises(ZeroDivisionError):
        with locks.lock(name) as guard:
            guard.give_up()
            raise ZeroDivisionError
    others.lock(name).acquire(wait=5).release()


def test_guard_may_be_released_within_its_block(locks: leasehold.Client, name: str) -> None:
    with locks.lock(name) as guard:
        guard.release()


def test_guards_stay_in_their_process(locks: leasehold.Client, name: str) -> None:
    with locks.lock(name) as guard:
        for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="into_handle"):
                duplicate(guard)


def test_pickled_client_opens_anew(locks: leasehold.Client, name: str) -> None:
    duplicate = pickle.loads(pickle.dumps(locks))
    with duplicate.lock(name):
        assert locks.lock(name).try_acquire() is None
    duplicate.close()


def test_closed_client_refuses_and_frees(
    redis: Redis, others: leasehold.Client, name: str
) -> None:
    with leasehold.connect(redis.url) as client:
        guard = client.lock(name).acquire()
    assert guard.lost_reason == "closed"
    others.lock(name).acquire(wait=0).release()
    with pytest.raises(leasehold.Closed):
        client.lock(name).acquire()
    client.close()


def test_close_ends_a_wait_of_another_thread(
    redis: Redis, locks: leasehold.Client, name: str
) -> None:
    ended: list[BaseException] = []
    waiting = leasehold.connect(redis.url)

    def wait() -> None:
        try:
            waiting.lock(name).acquire()
        except leasehold.LeaseholdError as error:
            ended.append(error)

    with locks.lock(name):
        thread = threading.Thread(target=wait)
        thread.start()
        wait_until(lambda: locks.waiters(name))
        waiting.close()
        thread.join()
        assert isinstance(ended[0], leasehold.Closed) and locks.waiters(name) == []


@pytest.mark.parametrize(
    ("options", "text"),
    [({"ttl": -1}, "time span"), ({"wait": math.nan}, "time span"), ({"ttl": 1e9}, "out of bounds")],
)
def test_bad_option_is_invalid_input(
    locks: leasehold.Client, name: str, options: dict[str, float], text: str
) -> None:
    with pytest.raises(leasehold.InvalidInput, match=text):
        locks.lock(name, **options).acquire()  # type: ignore[arg-type]


def test_bad_url_is_refused_at_once() -> None:
    for url in ("ftp://host", "", "redis://a,file:///b", "/var/lib"):
        with pytest.raises(leasehold.InvalidInput):
            leasehold.connect(url)


def test_address_is_shown_without_password() -> None:
    shown = repr(leasehold.connect(["redis://me:secret@a", "redis://b"]))
    assert "redis://a,redis://b" in shown and "secret" not in shown


def test_max_hold_ends_a_hold(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    with pytest.raises(leasehold.Lost) as lost:
        with locks.lock(name, max_hold=0.05) as guard:
            wait_until(lambda: not guard.is_valid)
    assert lost.value.reason == "max_hold" and lost.value.name == name
    others.lock(name).acquire(wait=5).release()


def test_renewals_keep_a_short_lease(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    with locks.lock(name, ttl=0.3) as guard:
        with pytest.raises(leasehold.Busy):
            others.lock(name).acquire(wait=1)
        guard.ensure()
        guard.renew()
