"""The levers move the kit's broker, and show how they stand."""

import pytest
from aiokafka.errors import KafkaError

from odradek.http.control.route import ControlObjects
from odradek.page.actions import ActionFailed
from odradek.page.changes import CHANGES
from odradek.page.facts.findings import findings, report_bytes
from odradek.page.facts.levers import levers
from odradek.page.facts.overview import overview
from odradek.page.facts.source import Missing, Unavailable
from odradek.page.views import Call, Query
from odradek.testing import Broker
from tests.page.conftest import page_of, producing


@pytest.fixture
def held():
    return ControlObjects()


async def pull(broker, held, change, **fields):
    """Make a change with these fields of its form. Return its line for people."""
    form = Query({name: [str(value)] for name, value in fields.items()})
    return (await CHANGES[change].make(Call(None, form, broker, held, True, {}))).text


async def test_the_clock_is_moved_stopped_and_sped_up(broker, held):
    before = levers(broker, held)
    assert (before.is_running, before.is_in_memory, before.is_frozen, before.speed) == (True, True, False, 1.0)
    await pull(broker, held, "advance", amount=1, unit="h")
    await pull(broker, held, "set-speed", speed=2)
    await pull(broker, held, "freeze")
    after = levers(broker, held)
    assert 3_500_000 < after.ahead_ms < 3_700_000
    assert (after.is_frozen, after.speed) == (True, 2.0)
    await pull(broker, held, "resume")
    with pytest.raises(ActionFailed, match="time cannot go back"):
        await pull(broker, held, "advance", amount=-1, unit="ms")
    with pytest.raises(ActionFailed, match="a speed must be above 0"):
        await pull(broker, held, "set-speed", speed=0)


async def test_a_fault_is_added_hits_and_is_removed(broker, held):
    await broker.create_topics({"orders": 1})
    added = await pull(broker, held, "add-fault", api="Produce", what="error", error="INVALID_RECORD")
    async with producing(broker, client_id="shop") as producer:
        with pytest.raises(KafkaError):
            await producer.send_and_wait("orders", b"1")
        [row] = levers(broker, held).faults
        assert (f"Added rule {row.number}.", row.hits, row.last) == (added, 1, "Produce shop orders")
        await pull(broker, held, "remove-fault", number=row.number)
        await producer.send_and_wait("orders", b"1")
    assert levers(broker, held).faults == ()
    with pytest.raises(ActionFailed, match="there is no rule 7"):
        await pull(broker, held, "remove-fault", number=7)
    with pytest.raises(ActionFailed, match="no-such"):
        await pull(broker, held, "add-fault", api="no-such")


async def test_a_snapshot_is_restored_and_a_killed_broker_started_again(broker, held):
    await broker.create_topics({"orders": 1})
    taken = await pull(broker, held, "snapshot")
    [number] = levers(broker, held).snapshots
    assert taken == f"Took snapshot {number}."
    await broker.create_topics({"bills": 1})
    await pull(broker, held, "restore", number=number)
    assert set(await broker.topics) == {"orders"}
    await pull(broker, held, "kill")
    assert not levers(broker, held).is_running
    with pytest.raises(ActionFailed):
        await pull(broker, held, "kill")
    for change in ("start", "stop", "start"):
        await pull(broker, held, change)
    assert set(await broker.topics) == {"orders"}
    with pytest.raises(ActionFailed, match="there is no snapshot 7"):
        await pull(broker, held, "restore", number=7)


async def test_a_broker_that_does_not_run_is_unavailable_and_back_after_its_start(broker, source):
    await broker.create_topics({"orders": 1})
    broker.kill()
    with pytest.raises(Unavailable):
        await overview(source)
    await broker.start()
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
