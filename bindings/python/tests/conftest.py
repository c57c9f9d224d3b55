from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Iterator

import leasehold
import pytest

from support import Redis

_numbers = itertools.count()


@pytest.fixture(scope="session")
def redis() -> Iterator[Redis]:
    server = Redis()
    yield server
    server.stop()


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"test/{os.getpid()}/{next(_numbers)}"


@pytest.fixture
def locks(redis: Redis) -> Iterator[leasehold.Client]:
    with leasehold.connect(redis.url) as client:
        yield client


@pytest.fixture
def others(redis: Redis) -> Iterator[leasehold.Client]:
    """A second client of the same server."""
    with leasehold.connect(redis.url) as client:
        yield client


@pytest.fixture
def folder_url(tmp_path: Path) -> str:
    return f"file://{tmp_path}/locks"
