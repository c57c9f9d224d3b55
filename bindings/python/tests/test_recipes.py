"""The recipes of docs/python.md."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import leasehold
import pytest

from support import Redis, wait_until

RECIPES = Path(__file__).parent.parent / "recipes"
REPORTS = """
import os, pathlib, time

def write_report(month, fence):
    folder = pathlib.Path(os.environ["FOLDER"])
    (folder / f"begun-{fence}").touch()
    while not (folder / "end").exists():
        time.sleep(0.01)
    return f"written {fence}"
"""


@pytest.fixture
def celery(redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pytest.importorskip("celery")
    (tmp_path / "reports.py").write_text(REPORTS)
    settings = {"BROKER": f"{redis.url}/3", "LOCKS": redis.url, "FOLDER": str(tmp_path)}
    path = os.pathsep.join([str(RECIPES), str(tmp_path), *sys.path])
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    command = [sys.executable, "-m", "celery", "-A", "celery_task", "worker", "--concurrency=3"]
    command += ["--loglevel=ERROR", "--without-gossip", "--without-mingle"]
    worker = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    monkeypatch.syspath_prepend(str(RECIPES))
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        yield importlib.import_module("celery_task")
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(30)


@pytest.mark.filterwarnings("ignore")
def test_one_celery_worker_runs_the_task(celery: Any, tmp_path: Path) -> None:
    first = celery.report.delay("2026-11")
    wait_until(lambda: list(tmp_path.glob("begun-*")), 60)
    others = [celery.report.delay("2026-11") for _ in range(2)]
    assert [it.get(timeout=30) for it in others] == ["another worker writes it"] * 2
    (tmp_path / "end").touch()
    (begun,) = tmp_path.glob("begun-*")
    assert first.get(timeout=30) == f"written {begun.name.partition('-')[2]}"


DJANGO = """
import django, sys
from django.conf import settings
settings.configure(INSTALLED_APPS=["jobs"], LOCKS=sys.argv[1], USE_TZ=True)
django.setup()
from django.core.management import CommandError, call_command
try:
    call_command("nightly")
except CommandError as error:
    print(error)
"""


def test_django_command_runs_on_one_machine(redis: Redis, locks: leasehold.Client) -> None:
    pytest.importorskip("django")

    def nightly() -> str:
        path = os.pathsep.join([str(RECIPES / "django_project"), *sys.path])
        command = [sys.executable, "-c", DJANGO, redis.url]
        environment = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    assert nightly().startswith("cleaning up with fence")
    with locks.lock("nightly"):
        assert nightly().startswith("another machine is at it")


@pytest.mark.filterwarnings("ignore")
def test_one_fastapi_replica_leads(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    httpx = pytest.importorskip("httpx")
    monkeypatch.setenv("LOCKS", redis.url)
    monkeypatch.setenv("ADDRESS", "10.0.0.7")
    monkeypatch.syspath_prepend(str(RECIPES))
    first = importlib.import_module("fastapi_app").app
    sys.modules.pop("fastapi_app")
    second = importlib.import_module("fastapi_app").app

    async def leads(app: Any) -> int:
        while app.state.fence is None:
            await asyncio.sleep(0.01)
        fence: int = app.state.fence
        return fence

    async def main() -> None:
        async with contextlib.AsyncExitStack() as replicas:
            async with first.router.lifespan_context(first):
                fence = await asyncio.wait_for(leads(first), 20)
                await replicas.enter_async_context(second.router.lifespan_context(second))
                transport = httpx.ASGITransport(app=second)
                async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
                    answer = (await client.get("/leader")).json()
                assert answer == {"leader": "10.0.0.7", "this": False}
            assert first.state.fence is None
            assert await asyncio.wait_for(leads(second), 20) > fence

    asyncio.run(main())


def test_one_apscheduler_worker_runs_the_jobs(redis: Redis) -> None:
    pytest.importorskip("apscheduler")
    command = [sys.executable, str(RECIPES / "apscheduler_worker.py")]
    environment = {**os.environ, "LOCKS": redis.url}

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    def tick(worker: subprocess.Popen[str]) -> int:
        assert worker.stdout
        word, pid, fence = worker.stdout.readline().split()
        assert (word, int(pid)) == ("tick", worker.pid)
        return int(fence)

    first = start()
    fence = tick(first)
    second = start()
    with leasehold.connect(redis.url) as locks:
        wait_until(lambda: locks.waiters("jobs"))
        assert tick(first) == fence
        first.send_signal(signal.SIGINT)
        first.communicate()
        assert tick(second) > fence
        second.send_signal(signal.SIGINT)
        second.communicate()


def test_fixture_gives_locks_in_memory() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-c", os.devnull, "--rootdir", str(RECIPES), str(RECIPES / "test_with_fixture.py")]
    tests = subprocess.run(command, capture_output=True, text=True)
    assert "2 passed" in tests.stdout, tests.stdout
