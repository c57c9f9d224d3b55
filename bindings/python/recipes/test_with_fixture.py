import leasehold
import pytest


def deploy(locks, version):
    with locks.lock("deploy", wait=0):
        return f"deployed {version}"


def test_deploys(locks):
    assert deploy(locks, 2) == "deployed 2"


def test_refuses_while_another_deployment_runs(locks):
    with locks.lock("deploy"), pytest.raises(leasehold.Busy):
        deploy(locks, 2)
