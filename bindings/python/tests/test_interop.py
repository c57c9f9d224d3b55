"""Other libraries and the command `leasehold` on the same keys."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, ContextManager, Iterator

import leasehold
import pytest

from support import Program, Redis, wait_until

Hold = Callable[[Redis, str], ContextManager[Any]]


@contextmanager
def redis_py(server: Redis, name: str) -> Iterator[None]:
    library = pytest.importorskip("redis")
    with library.Redis(port=server.port) as client:
        with client.lock(name, timeout=20, blocking_timeout=20, sleep=0.01):
            yield


@contextmanager
def redlock_py(server: Redis, name: str) -> Iterator[None]:
    library = pytest.importorskip("redlock")
    manager = library.Redlock([{"host": "127.0.0.1", "port": server.port}], retry_count=1)
    lock = wait_until(lambda: manager.lock(name, 20_000))
    yield
    manager.unlock(lock)


@contextmanager
def pottery(server: Redis, name: str) -> Iterator[None]:
    library = pytest.importorskip("pottery")
    client = pytest.importorskip("redis").Redis(port=server.port)
    lock = library.Redlock(key=name.split(":", 1)[-1], masters={client}, auto_release_time=20)
    assert lock.key == name
    assert wait_until(lambda: lock.acquire(blocking=False))
    yield
    lock.release()
    client.close()


@contextmanager
def drop_in(server: Redis, name: str) -> Iterator[None]:
    library = pytest.importorskip("redis")
    from leasehold import redis_lock

    with library.Redis(port=server.port) as client:
        with client.lock(name, timeout=20, blocking_timeout=20, lock_class=redis_lock.Lock) as lock:
            assert lock.guard.fence and lock.owned() and lock.locked()
            yield


@contextmanager
def python_redis_lock(server: Redis, name: str) -> Iterator[None]:
    library = pytest.importorskip("redis_lock")
    client = pytest.importorskip("redis").Redis(port=server.port)
    lock = library.Lock(client, name.split(":", 1)[-1], expire=20)
    assert wait_until(lambda: lock.acquire(blocking=False))
    yield
    lock.release()
    client.close()


# Each with the prefix of its keys.
LIBRARIES: dict[Hold, str] = {
    redis_py: "",
    redlock_py: "",
    pottery: "redlock:",
    python_redis_lock: "lock:",
    drop_in: "",
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("hold", LIBRARIES, ids=lambda it: it.__name__)
def test_library_and_leasehold_exclude_each_other(
    hold: Hold, redis: Redis, locks: leasehold.Client, name: str
) -> None:
    name = LIBRARIES[hold] + name
    with hold(redis, name):
        assert locks.lock(name).try_acquire() is None
        began = time.monotonic()
        thread = threading.Thread(target=lambda: entered.append(locks.lock(name).acquire(wait=20)))
        entered: list[leasehold.Guard] = []
        thread.start()
        wait_until(lambda: locks.waiters(name))
        assert not entered
    thread.join()
    assert time.monotonic() - began < 20
    other = redis.command("SET", name, "other", "NX")
    assert other.startswith("$-1") or other.startswith("_")
    entered[0].release()
    with hold(redis, name):
        pass


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("hold", LIBRARIES, ids=lambda it: it.__name__)
def test_library_and_leasehold_contend(
    hold: Hold, redis: Redis, locks: leasehold.Client, name: str
) -> None:
    name = LIBRARIES[hold] + name
    inside, total = [0], [0]

    def work(enter: Callable[[], ContextManager[Any]]) -> None:
        for _ in range(5):
            with enter():
                inside[0] += 1
                assert inside[0] == 1
                time.sleep(0.001)
                inside[0] -= 1
                total[0] += 1

    threads = [
        threading.Thread(target=work, args=(it,))
        for it in (lambda: locks.lock(name, wait=60), lambda: hold(redis, name)) * 2
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total == [20]


@pytest.fixture
def command(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    program = os.environ.get("LEASEHOLD_COMMAND")
    if not program:
        pytest.skip("LEASEHOLD_COMMAND names no command `leasehold`")
    monkeypatch.setenv("LEASEHOLD_STORE", redis.url)
    return [program]


def test_command_sees_and_waits_for_python(
    command: list[str], redis: Redis, locks: leasehold.Client, name: str
) -> None:
    with locks.lock(name) as guard:
        shown = subprocess.run([*command, "status", "--json", name], capture_output=True, text=True)
        assert json.loads(shown.stdout.splitlines()[0])["holders"][0]["fence"] == guard.fence
        busy = subprocess.run([*command, "run", "-n", name, "--", "true"], capture_output=True)
        assert busy.returncode == 75
        waiting = subprocess.Popen([*command, "run", name, "--", "true"])
        wait_until(lambda: locks.waiters(name))
    assert waiting.wait(20) == 0


def test_python_waits_for_a_killed_command(
    command: list[str], redis: Redis, locks: leasehold.Client, name: str
) -> None:
    holder = subprocess.Popen([*command, "run", "--ttl=2s", name, "--", "sleep", "60"])
    wait_until(lambda: locks.holders(name))
    assert locks.lock(name).try_acquire() is None
    holder.kill()
    holder.wait()
    with locks.lock(name, wait=20) as guard:
        assert guard.is_valid


def test_handle_of_python_is_released_by_the_command(
    command: list[str], locks: leasehold.Client, name: str
) -> None:
    handle = locks.lock(name).acquire().into_handle()
    released = subprocess.run([*command, "release"], input=handle.encode(), capture_output=True)
    assert released.returncode == 0, released.stderr
    locks.lock(name).acquire(wait=5).release()


CONTENDER = """
import sys, time, leasehold
with leasehold.connect(sys.argv[1]) as locks:
    for _ in range(5):
        with locks.lock(sys.argv[2], ttl=2):
            path = sys.argv[3]
            with open(path) as file:
                number = int(file.read())
            with open(path, "w") as file:
                file.write(str(number + 1))
"""


def test_command_and_python_contend(
    command: list[str], redis: Redis, name: str, tmp_path: Any
) -> None:
    path = tmp_path / "counter"
    path.write_text("0")
    script = 'i=$(cat "$0"); echo $((i + 1)) > "$0"'
    run = [*command, "run", "--ttl=2s", name, "--", "sh", "-c", script, str(path)]
    programs = [Program(CONTENDER, redis.url, name, str(path)) for _ in range(2)]
    for _ in range(8):
        subprocess.run(run, check=True)
    for program in programs:
        assert program.end() == (0, "", "")
    assert int(path.read_text()) == 8 + 10
