"""The levers move the kit's broker, and show how they stand."""

import pytest
from aiokafka.errors import KafkaError

from odradek.http.control.route import ControlObjects
from odradek.page.actions import ActionFailed
from odradek.page.facts import levers
from odradek.page.facts.findings import findings, report_bytes
from odradek.page.facts.overview import overview
from odradek.page.facts.source import Missing, Unavailable
from odradek.testing import Broker
from tests.page.conftest import page_of, producing


@pytest.fixture
def held():
    return ControlObjects()


async def test_the_clock_is_moved_stopped_and_sped_up(broker, held):
    before = levers.levers(broker, held)
    assert (before.is_running, before.is_in_memory, before.clock.is_frozen, before.clock.speed) == (True, True, False, 1.0)
    await levers.advance(broker, 3_600_000)
    levers.set_speed(broker, 2.0)
    levers.freeze(broker)
    after = levers.levers(broker, held).clock
    assert 3_500_000 < after.ahead_ms < 3_700_000
    assert (after.is_frozen, after.speed) == (True, 2.0)
    levers.resume(broker)
    with pytest.raises(ActionFailed, match="time cannot go back"):
        await levers.advance(broker, -1)
    with pytest.raises(ActionFailed, match="a speed must be above 0"):
        levers.set_speed(broker, 0)


async def test_a_fault_is_added_hits_and_is_removed(broker, held):
    await broker.create_topics({"orders": 1})
    number = levers.add_fault(broker, held, {"api": "Produce", "error": "INVALID_RECORD"})
    async with producing(broker, client_id="shop") as producer:
        with pytest.raises(KafkaError):
            await producer.send_and_wait("orders", b"1")
        [row] = levers.levers(broker, held).faults
        assert (row.number, row.hits) == (number, 1)
        assert row.last == "Produce shop orders"
        levers.remove_fault(broker, held, number)
        await producer.send_and_wait("orders", b"1")
    assert levers.levers(broker, held).faults == ()
    with pytest.raises(ActionFailed, match="there is no rule 7"):
        levers.remove_fault(broker, held, "7")
    with pytest.raises(ActionFailed, match="no-such"):
        levers.add_fault(broker, held, {"api": "no-such"})


async def test_a_snapshot_is_restored_and_a_killed_broker_started_again(broker, held):
    await broker.create_topics({"orders": 1})
    number = await levers.take_snapshot(broker, held)
    [row] = levers.levers(broker, held).snapshots
    assert row.number == number
    await broker.create_topics({"bills": 1})
    await levers.restore(broker, held, number)
    assert set(await broker.topics) == {"orders"}
    levers.kill(broker)
    assert not levers.levers(broker, held).is_running
    with pytest.raises(ActionFailed):
        levers.kill(broker)
    await levers.start(broker)
    await levers.stop(broker)
    await levers.start(broker)
    assert set(await broker.topics) == {"orders"}
    with pytest.raises(ActionFailed, match="there is no snapshot 7"):
        await levers.restore(broker, held, "7")


async def test_a_broker_that_does_not_run_is_unavailable_and_back_after_its_start(broker, source, held):
    await broker.create_topics({"orders": 1})
    levers.kill(broker)
    with pytest.raises(Unavailable):
        await overview(source)
    await levers.start(broker)
    assert [row.name for row in (await overview(source)).topics] == ["orders"]


async def test_the_report_of_the_pipeline_is_found_beside_the_data(tmp_path):
    data = tmp_path / "data"
    async with Broker(data) as broker, page_of(broker) as source:
        empty = await findings(source)
        assert empty.report is None
        assert str(tmp_path / "report.html") in empty.looked_at
        with pytest.raises(Missing):
            await report_bytes(source)
        (tmp_path / "report.html").write_text("<title>somebody else's</title>")
        assert (await findings(source)).report is None
        page = "<!doctype html><title>odradek: what groups and transactions did</title>"
        (tmp_path / "report.html").write_text(page)
        found = (await findings(source)).report
        assert (found.path, found.size_bytes) == (str(tmp_path / "report.html"), len(page))
        assert await report_bytes(source) == page.encode()
