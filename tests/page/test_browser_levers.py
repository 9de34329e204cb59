"""The levers in a browser, and a page that stays open while its broker, or the whole process, goes and comes back."""

import pytest
from aiokafka.errors import KafkaError

from odradek.testing import Broker
from tests.page.browsing import TOKEN, served_page
from tests.page.conftest import producing, tab_of

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("page-browser"), pytest.mark.timeout(240)]


async def press(tab, name, part=""):
    await tab.page.click(f"{part} button:text-is('{name}')")
    await tab.confirm()
    return await tab.said()


async def test_levers_move_the_broker(served, tab):
    broker = served.broker
    await broker.create_topics({"orders": 1})
    await tab.go("/page/levers")
    await tab.page.fill("input[name=token]", TOKEN)
    await tab.page.click("button.go")
    before_ms = broker.clock.now_ms()
    assert await press(tab, "Move the clock") == "The clock is 1 h further."
    assert broker.clock.now_ms() - before_ms >= 3_600_000
    await tab.see_text("clock", "1 h")
    await press(tab, "Freeze")
    await tab.see_text("clock", "stands still")
    await press(tab, "Resume")
    await tab.page.click("text=New rule")
    await tab.page.fill("input[name=api]", "Produce")
    await tab.page.fill("input[name=error]", "TOPIC_AUTHORIZATION_FAILED")
    await press(tab, "Add the rule")
    async with producing(broker) as producer:
        with pytest.raises(KafkaError):
            await producer.send_and_wait("orders", b"x")
    await tab.see_text("faults", "Produce")
    await tab.see("() => document.querySelector('#faults td').innerText === '1'")
    await press(tab, "Remove")
    await tab.see_text("faults", "No rule")
    await press(tab, "Take a snapshot")
    await broker.produce("orders", [b"later"])
    await press(tab, "Restore")
    assert await broker.records("orders") == []


async def test_an_open_page_goes_on_after_a_restart_of_its_broker(served, tab):
    broker = served.broker
    await broker.create_topics({"orders": 1})
    await broker.produce("orders", [b"before"])
    await tab.go("/page/topic?name=orders")
    await tab.see_text("records", "before")
    await broker.stop()
    await tab.see("() => !document.querySelector('#problem').hidden")
    await tab.see_text("records", "before")
    await broker.start()
    await broker.produce("orders", [b"after"])
    await tab.see_text("records", "after")
    await tab.see("() => document.querySelector('#problem').hidden")


async def test_an_open_page_goes_on_after_a_restart_of_the_process(chromium):
    async with Broker(topics={"orders": 1}) as broker, served_page(broker) as served, tab_of(chromium, served) as tab:
        await tab.go()
        await tab.see_text("topics", "orders")
        await tab.see_text("live", "live")
        await served.port.close()
        await tab.see_text("live", "trying again")
        async with served_page(broker, port=served.port.port):
            await broker.create_topics({"new": 1})
            await tab.see_text("topics", "new")
            await tab.see_text("live", "live")
            # The form of the old process is good in the new one.
            await tab.page.click("text=New topic")
            await tab.page.fill("input[name=name]", "made")
            await press(tab, "Create")
            assert "made" in await broker.topics
