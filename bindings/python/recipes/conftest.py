"""A fixture for the tests of your program: locks in memory, anew for each test."""

import leasehold
import pytest


@pytest.fixture
def locks():
    with leasehold.connect("memory:") as client:
        yield client
