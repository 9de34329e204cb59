"""Groups, transactions and requests in a browser: what clients do is shown, and buttons act on it."""

import asyncio

import pytest

from tests.broker.api.streams_requests import StreamsNode
from tests.page.browsing import TOKEN
from tests.page.conftest import consuming, producing
from tests.share_consumers import GROUP, TOPIC, polled, set_group_configs, share_consumer_beside

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("page-browser"), pytest.mark.timeout(240)]


async def test_a_group_is_followed_and_its_offsets_are_set(served, tab):
    await served.broker.create_topics({"orders": 2})
    async with producing(served.broker, transactional_id="bank") as producer, producer.transaction():
        for number in range(10):
            await producer.send("orders", b"x", partition=number % 2)
    await tab.go("/page/overview")
    async with consuming(served.broker, "orders", group_id="billing", client_id="ledger") as consumer:
        await consumer.getone()
        await consumer.commit()
        await tab.go("/page/group?id=billing")
        await tab.see_text("state", "Stable")
        [member] = await tab.rows("members")
        assert member[0].startswith("ledger")
        assert member[1] == "orders-0, orders-1"
        rows = await tab.cells("partitions")
        # Each partition has five records and a marker.
        assert [row["End"] for row in rows.values()] == ["6", "6"]
        assert sum(int(row["Lag, records"]) for row in rows.values()) == 9
        assert sum(int(row["Lag, offsets"]) for row in rows.values()) == 11
        await tab.see_text("rebalances", "joined")
        await consumer.getmany(timeout_ms=1_000)
        await consumer.commit()
        await tab.see("() => document.querySelector('#state').innerText.includes('Lag in records\\n0')")
        await tab.page.click("#members button")
        assert "from billing? A client that is alive joins again." in await tab.page.inner_text("#ask")
        await tab.confirm()
        assert (await tab.said()).startswith("Removed ledger-")
    await tab.see_text("state", "Empty")
    await tab.see_text("rebalances", "left")
    await tab.page.check("input[data-all=p]")
    await tab.page.click("text=Set the offsets of the checked")
    await tab.page.select_option("select[name=to]", "offset")
    await tab.page.fill("input[name=number]", "2")
    await tab.page.click("button:text-is('Set offsets')")
    assert "orders-0, orders-1 to offset 2?" in await tab.page.inner_text("#ask")
    await tab.confirm()
    await tab.see_text("said", "Set 2 offsets.")
    await tab.see("() => [...document.querySelectorAll('#partitions td:nth-child(2)')].every(cell => cell.innerText === '2')")
    await tab.page.click("button:text-is('Delete the group')")
    await tab.confirm()
    await tab.see_text("groups", "No group yet")
    await tab.assert_no_problem()


async def test_the_records_that_a_share_group_has_in_flight_are_followed(served, tab):
    await served.broker.create_topics({TOPIC: 1})
    await served.broker.produce(TOPIC, [b"a", b"b", b"c"])
    await asyncio.to_thread(set_group_configs, served.broker.bootstrap_servers)
    async with share_consumer_beside(served.broker, "worker") as worker:
        messages = await asyncio.to_thread(polled, worker)
        await tab.go(f"/page/group?id={GROUP}")
        await tab.see_text("in_flight", "ACQUIRED")
        [row] = (await tab.cells("in_flight")).values()
        assert (row["Offsets"], row["Deliveries"]) == ("0-2", "1")
        assert row["Holder"].startswith("worker")
        assert row["Lock left"].endswith(" s")
        worker.acknowledge(messages[1])
        await asyncio.to_thread(worker.commit_sync)
        await tab.see_text("in_flight", "ACKNOWLEDGED")
        await served.broker.clock.advance(seconds=30)
        await tab.see_text("in_flight", "AVAILABLE")
        assert [row[2] for row in await tab.rows("in_flight")] == ["AVAILABLE", "ACKNOWLEDGED", "AVAILABLE"]
        assert "Lag in offsets\n2" in await tab.page.inner_text("#state")
        await tab.assert_no_problem()


async def test_records_in_flight_are_released_and_rejected_with_the_levers_only(served, tab):
    await served.broker.create_topics({TOPIC: 1})
    await served.broker.produce(TOPIC, [b"a", b"b", b"c"])
    # The locks outlast the slowest browser.
    await asyncio.to_thread(set_group_configs, served.broker.bootstrap_servers, share_record_lock_duration_ms="60000")
    async with share_consumer_beside(served.broker, "worker") as worker:
        messages = await asyncio.to_thread(polled, worker)
        worker.acknowledge(messages[1])
        await asyncio.to_thread(worker.commit_sync)
        await tab.go("/page/overview")
        await tab.see_text("groups", GROUP)
        row = (await tab.cells("groups"))[GROUP]
        assert (row["Kind"], row["Lag"], row["In flight"]) == ("share", "2", "3")
        await tab.go(f"/page/group?id={GROUP}")
        await tab.see_text("in_flight", "ACQUIRED")
        assert await tab.page.locator("#in_flight button").count() == 0
        await tab.go("/page/levers")
        await tab.page.fill("input[name=token]", TOKEN)
        await tab.page.click("button.go")
        await tab.go(f"/page/group?id={GROUP}")
        # A button under the pointer stays while the time left on the lock passes.
        left = (await tab.rows("in_flight"))[0][4]
        release = await tab.page.wait_for_selector("#in_flight button")
        await tab.see("([left]) => document.querySelector('#in_flight tbody tr').cells[4].innerText !== left", left)
        assert await release.evaluate("button => button.isConnected")
        for button, offset, state in (("Release", 0, "AVAILABLE"), ("Reject", 2, "ARCHIVED")):
            await tab.page.locator("#in_flight button", has_text=button).first.click()
            assert f"{button} offset {offset} of {TOPIC}-0?" in await tab.page.inner_text("#ask")
            await tab.confirm()
            await tab.see_text("in_flight", state)
            assert f"1 record of {TOPIC}-0" in await tab.said()
        assert [row[2] for row in await tab.rows("in_flight")] == ["AVAILABLE", "ACKNOWLEDGED", "ARCHIVED"]
        worker.acknowledge(messages[0])
        worker.acknowledge(messages[2])
        [error] = (await asyncio.to_thread(worker.commit_sync)).values()
        assert "INVALID_RECORD_STATE" in str(error)
        await tab.assert_no_problem()


async def test_the_topology_and_the_tasks_of_a_streams_group_are_followed(served, tab):
    await served.broker.create_topics({"t": 2})
    node = StreamsNode(served.broker)
    # Past the delay of a new group's first assignment, the group has its internal topics, too.
    epoch = (await node.beat()).member_epoch
    await served.broker.clock.advance(seconds=4)
    epoch = (await node.beat("m", epoch)).member_epoch
    await tab.go("/page/group?id=g")
    await tab.see_text("tasks", "1_2")
    assert {name: row["Moves to"] for name, row in (await tab.cells("tasks")).items()} == dict.fromkeys(
        ("0_0", "0_1", "1_0", "1_1", "1_2"), "\N{EN DASH}"
    )
    told = await tab.page.get_attribute("#topology svg", "aria-label")
    assert told == "subtopology 0 reads t, writes words; subtopology 1 reads words, keeps state in counts"
    drawn = await tab.page.locator("#topology svg text").all_text_contents()
    assert drawn == ["t", "Subtopology 0", "words", "Subtopology 1", "counts"]
    await node.beat("n", process_id="q")
    await served.broker.clock.advance(seconds=4)
    await node.beat("m", epoch)
    await tab.see("() => [...document.querySelectorAll('#tasks td:last-child')].some(each => each.innerText !== '\N{EN DASH}')")
    await tab.see_text("members", "words-0")
    await tab.see_text("rebalances", "active task 1_2 from m to n: its member had more than its share")
    await tab.picture("streams")
    await tab.page.click("#members button[value=n]")
    await tab.confirm()
    assert (await tab.said()).startswith("Removed n")
    await tab.see_text("rebalances", "active task 1_2 from nobody to m")
    await tab.assert_no_problem()


async def test_an_open_transaction_is_shown_and_aborted(served, tab):
    await served.broker.create_topics({"payments": 1})
    await tab.go("/page/transactions")
    await tab.see_text("open", "None")
    async with producing(served.broker, transactional_id="bank", client_id="bank") as producer:
        await producer.begin_transaction()
        await producer.send_and_wait("payments", b"paid")
        await tab.see_text("open", "bank")
        await tab.see_text("open", "holds back read_committed at 0")
        await tab.page.click("#open button")
        await tab.confirm()
        assert "Aborted the transaction of bank" in await tab.said()
        await tab.see_text("open", "nothing holds readers back")
        # The producer was fenced by a new epoch, which begins without a transaction.
        await tab.see_text("others", "Empty")
        assert "Empty" in (await tab.cells("others"))["bank"]["State"]
        with pytest.raises(Exception, match=r"(?i)fenced|epoch"):
            await producer.commit_transaction()
    await tab.go("/page/topic?name=payments")
    await tab.see_text("records", "aborted")


async def test_requests_are_drawn_as_they_come(served, tab):
    await served.broker.create_topics({"orders": 1})
    await tab.go("/page/requests")
    await tab.see_text("live", "live")
    async with producing(served.broker, client_id="shop") as producer:
        await producer.send_and_wait("orders", b"x")
        await tab.see(
            "() => [...document.querySelectorAll('svg g.request text')].some(each => each.textContent.startsWith('shop Produce'))"
        )
        shop = next(row for row in await tab.rows("clients") if row[0] == "shop")
        assert int(shop[3]) >= 2
        await tab.page.locator("svg g.request a", has_text="Produce").first.click()
        await tab.page.wait_for_selector("#json")
        assert '"orders"' in await tab.page.inner_text("#json")
        await tab.assert_no_problem()
