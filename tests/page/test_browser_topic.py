"""A topic in a browser: the tail, jumps, a search, records that are hostile, and what its buttons do."""

import time

import pytest

from odradek.testing import NewTopic
from tests.page.conftest import producing

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("page-browser"), pytest.mark.timeout(240)]

HOSTILE = (
    b"<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">",
    "user\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe".encode(),
    b"\xff\xfe\x00 not text",
    b"line " * 200_000,
    b"</textarea></table></body>{{ 7 * 7 }}",
)


async def values(tab):
    """The first lines of the values, from the top."""
    return await tab.page.eval_on_selector_all("#records summary", "each => each.map(one => one.innerText.trim())")


async def test_the_tail_follows_until_it_is_paused(served, tab):
    await served.broker.create_topics({"orders": 2})
    await tab.go("/page/topic?name=orders")
    await tab.see_text("records", "No records here")
    async with producing(served.broker) as producer:
        # Partitions are merged by their records' times, so no two records may be of the same millisecond.
        start_ms = time.time_ns() // 1_000_000
        for number in range(3):
            await producer.send_and_wait(
                "orders", b"order %d" % number, b"ada", partition=number % 2, timestamp_ms=start_ms + number
            )
        await tab.see_text("records", "order 2")
        assert await values(tab) == ["order 2", "order 1", "order 0"]
        await tab.page.click("button[data-pause]")
        await producer.send_and_wait("orders", b"order 3")
        await tab.page.click("#produce summary")
        assert await values(tab) == ["order 2", "order 1", "order 0"]
        await tab.page.click("button[data-pause]")
        await tab.see_text("records", "order 3")
    # An open record stays open while others arrive.
    await tab.page.locator("#records summary", has_text="order 1").click()
    await tab.page.locator("#records pre", has_text="order 1").wait_for()
    await served.broker.produce("orders", [b"order 4"])
    await tab.see_text("records", "order 4")
    assert await tab.page.locator("#records pre", has_text="order 1").is_visible()
    await tab.assert_no_problem()


async def test_records_are_found_by_offset_time_and_text(served, tab):
    # Their times are long ago.
    await served.broker.create_topics({"orders": NewTopic(1, configs={"retention.ms": "-1"})})
    async with producing(served.broker) as producer:
        for number in range(120):
            await producer.send("orders", b"order %d" % number, b"key", timestamp_ms=1_700_000_000_000 + number * 1_000)
        await producer.flush()
    await tab.go("/page/topic?name=orders&offset=100")
    assert (await values(tab))[0] == "order 100"
    await tab.page.fill("input[name=offset]", "")
    await tab.page.fill("input[name=time]", "2023-11-14T22:14:20")
    await tab.page.click("form[role=search] button")
    await tab.see_text("records", "order 60")
    assert (await values(tab))[0] == "order 60"
    await tab.page.click("#records >> text=Older")
    await tab.see_text("records", "order 59")
    assert (await values(tab))[0] == "order 59"
    await tab.go("/page/topic?name=orders&q=ORDER+11&in=value")
    await tab.see_text("records", "to the end")
    assert await values(tab) == ["order 11", *(f"order 11{number}" for number in range(10))]


async def test_hostile_records_are_shown_as_data(served, tab):
    await served.broker.create_topics({"hostile": 1})
    await served.broker.produce("hostile", [(b"key", value) for value in HOSTILE])
    await tab.go("/page/topic?name=hostile")
    await tab.see_text("records", "</textarea>")
    shown = list(reversed(await values(tab)))
    assert shown[0].startswith("<script>document.title")
    assert shown[1] == "userU+202Egpj.exe"
    assert shown[2].startswith("ff fe 00 20")
    assert len(shown[3]) < 200
    assert shown[4] == "</textarea></table></body>{{ 7 * 7 }}"
    for number in range(len(HOSTILE)):
        await tab.page.locator("#records summary").nth(number).click()
    await tab.page.wait_for_function("() => document.querySelectorAll('#records pre').length === 10")
    assert await tab.page.title() == "hostile · odradek"
    assert await tab.page.evaluate("() => document.documentElement.scrollWidth") <= 1280
    # The form gives back what it was given.
    await tab.go("/page/topic?name=hostile&edit=0:4")
    assert (await tab.page.input_value("textarea[name=value]")).encode() == HOSTILE[4]
    await tab.go("/page/topic?name=hostile&edit=0:2")
    assert bytes.fromhex(await tab.page.input_value("textarea[name=value]")) == HOSTILE[2]


async def test_a_record_is_sent_and_edited_and_sent_again(served, tab):
    await served.broker.create_topics({"orders": 2})
    await tab.go("/page/topic?name=orders")
    await tab.page.click("#produce summary")
    await tab.page.fill("#produce input[name=key]", "ada")
    await tab.page.uncheck("input[name=key_is_null]")
    await tab.page.fill("textarea[name=value]", '{"total": 12}\n')
    await tab.page.fill("textarea[name=headers]", "trace=1\nempty")
    await tab.page.click("#produce button")
    await tab.confirm()
    assert await tab.said() == "Wrote offset 0 of partition 1."
    await tab.see_text("records", '{ "total": 12 }')
    [sent] = await served.broker.records("orders")
    assert (sent.key, sent.value) == (b"ada", b'{"total": 12}\n')
    assert [tuple(header) for header in sent.headers] == [("trace", b"1"), ("empty", None)]
    await tab.page.click("#records summary")
    await tab.page.click("text=Edit and send again")
    await tab.page.fill("textarea[name=value]", "null")
    await tab.page.click("#produce button")
    await tab.confirm()
    await tab.said()
    again = (await served.broker.records("orders"))[-1]
    assert (again.partition, again.key, again.value, [tuple(each) for each in again.headers]) == (
        sent.partition,
        b"ada",
        b"null",
        [("trace", b"1"), ("empty", None)],
    )


async def test_configs_partitions_and_the_topic_itself_are_changed(served, tab):
    await served.broker.create_topics({"orders": 1})
    await served.broker.produce("orders", [b"x"] * 10)
    await tab.go("/page/topic-configs?name=orders")
    await tab.page.click("text=Set a config")
    await tab.page.fill("input[name=config]", "retention.ms")
    await tab.page.fill("input[name=value]", "86400000")
    await tab.page.click("button:text-is('Set')")
    assert "Set retention.ms of orders to 86400000?" in await tab.page.inner_text("#ask")
    await tab.confirm()
    await tab.see_text("own", "86400000")
    assert (await tab.cells("own"))["retention.ms"]["Value"] == "86400000"
    await tab.page.click("#own button")
    await tab.confirm()
    await tab.see_text("own", "None")
    await tab.go("/page/topic?name=orders")
    await tab.page.click("text=Change or delete the topic")
    await tab.page.fill("input[name=before]", "4")
    await tab.page.click("button:text-is('Delete records')")
    await tab.confirm()
    assert await tab.said() == "orders-0 begins at offset 4 now."
    await tab.page.click("button:text-is('Add partitions')")
    await tab.confirm()
    await tab.page.locator("#said", has_text="2 partitions").wait_for()
    await tab.go("/page/topic-log?name=orders")
    rows = await tab.cells("partitions")
    assert [(row["Start"], row["End"]) for row in rows.values()] == [("4", "10"), ("0", "0")]
    assert "active" in (await tab.rows("segments"))[0]
    await tab.go("/page/topic?name=orders")
    await tab.page.click("text=Change or delete the topic")
    await tab.page.click("button:text-is('Delete the topic')")
    # Nothing happens without the answer.
    await tab.page.click("#ask button[value=no]")
    assert "orders" in await served.broker.topics
    await tab.page.click("button:text-is('Delete the topic')")
    await tab.confirm()
    await tab.see_text("topics", "No topic yet")
    assert "orders" not in await served.broker.topics
