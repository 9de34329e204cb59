"""The overview in a browser: it shows what real clients do, as they do it."""

import pytest

from tests.page.conftest import consuming, producing

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("page-browser"), pytest.mark.timeout(240)]


async def test_the_overview_follows_real_clients(served, tab):
    await tab.go()
    await tab.see_text("topics", "No topic yet")
    await served.broker.create_topics({"orders": 3})
    await tab.see_text("topics", "orders")
    async with (
        producing(served.broker, client_id="shop") as producer,
        consuming(served.broker, "orders", group_id="billing", client_id="ledger") as consumer,
    ):
        for number in range(10):
            await producer.send_and_wait("orders", b"%d" % number, partition=number % 3)
        await consumer.getone()
        await consumer.commit()
        await tab.see_text("groups", "Stable")
        await tab.see("() => document.querySelector('#topics [data-key=orders]').lastElementChild.innerText === '9'")
        orders = (await tab.cells("topics"))["orders"]
        assert (orders["Partitions"], orders["Records"], orders["Lag"]) == ("3", "10", "9")
        billing = (await tab.cells("groups"))["billing"]
        assert (billing["State"], billing["Members"], billing["Lag"], billing["Topics"]) == ("Stable", "1", "9", "orders")
        clients = await tab.cells("clients")
        assert clients["shop"]["User"] == "ANONYMOUS"
        assert clients["ledger"]["User"] == "ANONYMOUS"
        await tab.picture("overview")
    await tab.see_text("clients", "Nobody is connected")
