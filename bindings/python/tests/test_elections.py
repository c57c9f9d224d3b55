"""Elections of a leader."""

from __future__ import annotations

import asyncio
import threading

import leasehold
import pytest
from leasehold import aio

from support import Redis, wait_until


def test_leader_is_seen_with_its_value(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    with locks.election(name, value="10.0.0.7") as leadership:
        leader = others.election(name).leader()
        assert leader and (leader.fence, leader.value) == (leadership.fence, "10.0.0.7")
        leadership.publish("10.0.0.8")
        leader = others.election(name).leader()
        assert leader and leader.value == "10.0.0.8"
        with pytest.raises(leasehold.Busy):
            others.election(name).campaign(wait=0.01)
    assert others.election(name).leader() is None


def test_observer_sees_each_change(
    locks: leasehold.Client, others: leasehold.Client, name: str
) -> None:
    changes = others.election(name, poll_interval=0.02).observe()
    assert next(changes) == (None, None)
    leadership = locks.election(name, value="a").campaign()
    leader = next(changes).leader
    assert leader and (leader.value, leader.fence) == ("a", leadership.fence)
    leadership.publish("b")
    leader = next(changes).leader
    assert leader and leader.value == "b"
    assert leadership.resign() == "released"
    assert next(changes) == (None, None)


def test_observation_ends_with_its_client(redis: Redis, name: str) -> None:
    seen: list[leasehold.LeaderChange] = []
    client = leasehold.connect(redis.url)
    changes = client.election(name).observe()
    thread = threading.Thread(target=lambda: seen.extend(changes))
    thread.start()
    wait_until(lambda: seen)
    client.close()
    thread.join()
    assert seen == [(None, None)]


def test_observer_reports_a_stopped_server(name: str) -> None:
    with leasehold.connect("redis://127.0.0.1:1") as client:
        change = next(client.election(name).observe())
        assert change.leader is None and isinstance(change.error, leasehold.Unavailable)


def test_only_one_of_many_leads(redis: Redis, name: str) -> None:
    async def main() -> None:
        leading, most, terms = 0, 0, 0

        async def candidate() -> None:
            nonlocal leading, most, terms
            async with aio.connect(redis.url) as locks:
                async with locks.election(name) as leadership:
                    leading, terms = leading + 1, terms + 1
                    most = max(most, leading)
                    await leadership.publish("leads")
                    leading -= 1

        await asyncio.gather(*(candidate() for _ in range(5)))
        assert (most, terms) == (1, 5)

    asyncio.run(main())


def test_asyncio_observes_changes(redis: Redis, name: str) -> None:
    async def main() -> None:
        async with aio.connect(redis.url) as locks:
            election = locks.election(name, value="a", poll_interval=0.02)
            values: list[str | None] = []
            leadership = await election.campaign()
            assert (await election.leader()) is not None
            async for change in election.observe():
                values.append(change.leader and change.leader.value)
                if len(values) == 1:
                    assert await leadership.resign() == "released"
                else:
                    break
            assert values == ["a", None]

    asyncio.run(main())


def test_lost_leader_is_cancelled(redis: Redis, name: str) -> None:
    async def main() -> None:
        async with aio.connect(redis.url) as locks:
            with pytest.raises(leasehold.Lost):
                async with locks.election(name) as leadership:
                    leadership.give_up()
                    await asyncio.Event().wait()
            assert await locks.election(name).leader() is None

    asyncio.run(main())
