"""The drop-in under redis-py's own tests of its lock, which come from its source package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import Redis

# What differs, and is in the table of docs/python.md.
DIFFERENCES = {
    # The lease has a TTL without `timeout` too, and is renewed.
    "test_lock": "a lock without timeout has a TTL",
    "test_lock_token": "token",
    "test_lock_token_thread_local_false": "token",
    "test_context_manager_not_raise_on_release_lock_not_owned_error": "renewed beyond the timeout",
    # It does not poll.
    "test_blocking_timeout": "sleep",
    "test_context_manager_blocking_timeout": "sleep",
    # It renews the lease, and adds no time.
    "test_extend_lock": "extend",
    "test_extend_lock_float": "extend",
}

PLUGIN = """
import redis.asyncio.lock, redis.lock
from leasehold import redis_lock
redis.lock.Lock = redis_lock.Lock
redis.asyncio.lock.Lock = redis_lock.AsyncLock
"""


@pytest.fixture(scope="module")
def sources() -> Path:
    folder = os.environ.get("LEASEHOLD_REDIS_PY")
    if not folder:
        pytest.skip("LEASEHOLD_REDIS_PY names no source folder of redis-py")
    return Path(folder)


# The asynchronous tests run on two kinds of clients.
@pytest.mark.parametrize(("file", "passing"), [("test_lock.py", 24), ("test_asyncio/test_lock.py", 46)])
def test_tests_of_redis_py_pass_but_differences(
    file: str, passing: int, sources: Path, redis: Redis, tmp_path: Path
) -> None:
    (tmp_path / "swap_lock.py").write_text(PLUGIN)
    path = os.pathsep.join([str(tmp_path), str(sources), *sys.path])
    command = [sys.executable, "-m", "pytest", f"tests/{file}", "-p", "swap_lock", "-rA", "-q"]
    command += [f"--redis-url={redis.url}/9", "-p", "no:cacheprovider"]
    tests = subprocess.run(
        command,
        cwd=sources,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    results = re.findall(r"^(PASSED|FAILED|ERROR) \S*::(\w+)", tests.stdout, re.M)
    failed = {test for result, test in results if result != "PASSED"}
    known = {test for _, test in results}
    assert failed == {it for it in DIFFERENCES if it in known}, tests.stdout[-4000:]
    assert sum(result == "PASSED" for result, _ in results) == passing
