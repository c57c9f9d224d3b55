"""Forked children: plain forks, multiprocessing, and gunicorn."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from pathlib import Path

import leasehold
import pytest

from support import Program, Redis, free_port, run, wait_until

GUARD = """
import multiprocessing, sys, leasehold
locks = leasehold.connect(sys.argv[1])
guard = locks.lock(sys.argv[2]).acquire()

def child(queue):
    errors, state = [], (guard.is_valid, guard.remaining, guard.lost_reason)
    for call in (guard.ensure, guard.renew, guard.release):
        try:
            call()
        except leasehold.Forked as error:
            errors.append(error.kind)
    with locks.lock(sys.argv[2] + "/child", wait=5) as own:
        queue.put((*state, errors,
                   locks.lock(sys.argv[2]).try_acquire() is None, own.is_valid))

context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=child, args=(queue,))
process.start()
print(queue.get(timeout=20))
process.join()
print(process.exitcode, guard.is_valid, guard.release())
"""


def without_fork_warning(errors: str) -> str:
    """Python warns of a fork with threads from 3.12 on."""
    lines = [it for it in errors.splitlines() if "DeprecationWarning" not in it]
    return "\n".join(it for it in lines if not it.startswith("  self.pid = os.fork()"))


def test_child_cannot_use_its_parents_guard(redis: Redis, name: str) -> None:
    code, output, errors = Program(GUARD, redis.url, name).end()
    assert without_fork_warning(errors) == ""
    assert output.splitlines() == [
        "(False, 0.0, 'forked', ['forked', 'forked', 'forked'], True, True)",
        "0 True released",
    ]
    assert code == 0


CONNECT = """
import os, sys, leasehold
from leasehold import aio
locks = leasehold.connect(sys.argv[1]), aio.connect(sys.argv[1])
print(len(os.listdir("/proc/self/task")))
if os.fork() == 0:
    os._exit(0)
os.wait()
"""


def test_connecting_starts_no_thread(redis: Redis) -> None:
    assert run(CONNECT, redis.url) == "1\n"  # so a fork warns of nothing


EXITS = """
import multiprocessing, sys, leasehold
locks = leasehold.connect(sys.argv[1])

def child(name):
    child.guard = locks.lock(name).acquire()

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    process = context.Process(target=child, args=(sys.argv[2],))
    process.start()
    process.join()
    print(process.exitcode)
"""


def test_child_of_multiprocessing_frees_its_locks(
    redis: Redis, locks: leasehold.Client, name: str
) -> None:
    code, output, errors = Program(EXITS, redis.url, name).end()
    assert (code, output, without_fork_warning(errors)) == (0, "0\n", "")
    assert redis.value(name) is None


STORM = """
import os, sys, threading, time, warnings, leasehold
warnings.simplefilter("ignore")
locks, forks = leasehold.connect(sys.argv[1]), int(sys.argv[2])
stop = False

def work(number):
    while not stop:
        with locks.lock(f"storm/{number}"):
            pass

threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
time.sleep(float(sys.argv[3]))
for number in range(forks):
    pid = os.fork()
    if pid == 0:
        try:
            with locks.lock(f"storm/child/{os.getpid()}", wait=20):
                os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
        finally:
            os._exit(1)
    end = time.monotonic() + 30
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(pid, 9)
            print("hangs", number)
            break
        time.sleep(0.0005)
stop = True
for thread in threads:
    thread.join()
print("done")
"""


def test_forks_beside_busy_threads_never_hang(redis: Redis) -> None:
    forks = os.environ.get("LEASEHOLD_TEST_FORKS", "150")
    assert Program(STORM, redis.url, forks, "0").end(600) == (0, "done\n", "")


@pytest.mark.parametrize("delay", [0, 0.0005, 0.001, 0.0015, 0.002, 0.003])
def test_fork_during_the_first_calls_never_hangs(delay: float, redis: Redis) -> None:
    for _ in range(2):
        assert Program(STORM, redis.url, "1", str(delay)).end() == (0, "done\n", "")


FOLDER = """
import os, sys, leasehold
locks = leasehold.connect(sys.argv[1])
guard = locks.lock("job").acquire()
if os.fork() == 0:
    sys.stdin.readline()  # lives longer than its parent
    os._exit(0)
print("held", flush=True)
os.kill(os.getpid(), 9)
"""


def test_child_keeps_a_file_lock_of_its_killed_parent(folder_url: str) -> None:
    """The kernel frees a lock file with its last descriptor: docs/python.md says so."""
    with Program(FOLDER, folder_url) as program:
        assert program.line() == "held"
        program.process.wait(20)
        with leasehold.connect(folder_url) as locks:
            assert locks.lock("job").try_acquire() is None
            program.tell()
            locks.lock("job").acquire(wait=20).release()


APPLICATION = """
import os, leasehold
locks = leasehold.connect(os.environ["STORE"])
held = locks.lock("gunicorn/master").acquire() if os.environ["HELD"] else None

def application(environ, start_response):
    with locks.lock("gunicorn/request", wait=20) as guard:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [f"{os.getpid()} {guard.fence}".encode()]
"""


@pytest.mark.parametrize("held", ["", "yes"], ids=["connected", "holding"])
def test_gunicorn_workers_share_a_preloaded_client(
    held: str, redis: Redis, locks: leasehold.Client, tmp_path: Path
) -> None:
    pytest.importorskip("gunicorn")
    (tmp_path / "application.py").write_text(APPLICATION)
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--preload", "--workers=3"]
    command += [f"--bind=127.0.0.1:{port}", "--log-level=error", "application:application"]
    environment = {**os.environ, "STORE": redis.url, "HELD": held}
    server = subprocess.Popen(command, cwd=tmp_path, env=environment)
    try:

        def answer() -> str | None:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                connection.request("GET", "/")
                return connection.getresponse().read().decode()
            except OSError:
                return None

        wait_until(answer)
        answers = [it for it in (answer() for _ in range(60)) if it]
        fences = [int(it.split()[1]) for it in answers]
        assert len(answers) == 60 and fences == sorted(set(fences))
        assert bool(locks.holders("gunicorn/master")) == bool(held)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)
    assert redis.value("gunicorn/master") is None
