"""Exceptions, their attributes, and their way through pickle."""

from __future__ import annotations

import copy
import functools
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import leasehold
import pytest
from leasehold import errors

from support import Redis


def every_class() -> list[type[leasehold.LeaseholdError]]:
    return [getattr(errors, name) for name in errors.__all__]


def test_classes_are_those_of_python_too() -> None:
    expected = {
        leasehold.Busy: TimeoutError,
        leasehold.Unavailable: ConnectionError,
        leasehold.Refused: PermissionError,
        leasehold.InvalidInput: ValueError,
        leasehold.Forked: RuntimeError,
        leasehold.Closed: RuntimeError,
    }
    for of, base in expected.items():
        assert issubclass(of, base)
    assert all(issubclass(of, leasehold.LeaseholdError) for of in every_class())


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_attributes_survive_pickle(
    protocol: int, locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    with locks.lock(name):
        with pytest.raises(leasehold.Busy) as busy:
            others.lock(name).acquire(wait=0)
    for copied in (
        pickle.loads(pickle.dumps(busy.value, protocol)),
        copy.copy(busy.value),
        copy.deepcopy(busy.value),
    ):
        assert type(copied) is leasehold.Busy and str(copied) == str(busy.value)
        assert vars(copied) == vars(busy.value)


@pytest.mark.parametrize("of", every_class())
def test_errors_of_programs_survive_pickle(of: type[leasehold.LeaseholdError]) -> None:
    copied = pickle.loads(pickle.dumps(of("text")))
    assert type(copied) is of and str(copied) == "text"


def fail(url: str, name: str) -> None:
    with leasehold.connect(url) as client:
        client.lock(name).acquire(wait=0)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_error_passes_a_process_pool(
    method: str, redis: Redis, locks: leasehold.Client, name: str
) -> None:
    context = multiprocessing.get_context(method)
    with locks.lock(name), ProcessPoolExecutor(1, mp_context=context) as pool:
        with pytest.raises(leasehold.Busy) as busy:
            pool.submit(fail, redis.url, name).result(60)
    assert busy.value.name == name and busy.value.holder


def test_stopped_server_is_unavailable(name: str) -> None:
    with leasehold.connect("redis://127.0.0.1:1") as client:
        with pytest.raises(leasehold.Unavailable) as unavailable:
            client.lock(name).try_acquire()
    assert unavailable.value.kind == "unreachable" and unavailable.value.retryable
    assert not unavailable.value.effect_unknown and unavailable.value.name == name


def test_wrong_password_is_refused(redis: Redis, name: str) -> None:
    with leasehold.connect(redis.url.replace("//", "//me:wrong@")) as client:
        with pytest.raises(leasehold.Refused) as refused:
            client.lock(name).acquire(wait=5)
    assert "wrong@" not in str(refused.value) and not refused.value.retryable


def test_error_of_the_block_wins_over_that_of_close(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = functools.partialmethod(leasehold.Client.close, 0.1)
    monkeypatch.setattr(leasehold.Client, "close", close)
    server = Redis()
    try:
        with pytest.raises(ZeroDivisionError):
            with leasehold.connect(server.url) as client:
                guard = client.lock(name).acquire()
                server.freeze()
                raise ZeroDivisionError
        assert guard.lost_reason == "closed"
    finally:
        server.thaw()
        server.stop()


def test_missing_feature_is_unsupported(folder_url: str, name: str) -> None:
    with leasehold.connect(folder_url) as client, client.lock(name) as guard:
        with pytest.raises(leasehold.Unsupported):
            guard.handle()
