"""Records are shown as they are in the log, page by page, and found."""

import asyncio
import json

import pytest

from odradek.page.facts import records
from odradek.page.facts.decoding import Format
from odradek.page.facts.reading import Mark
from odradek.page.facts.records import Cursor, Search, at_end, at_start, at_time, raw_record, read_back, read_forward, search
from odradek.page.facts.source import Missing
from tests.page.conftest import producing


def offsets(page):
    return [(record.partition, record.offset) for record in page.records]


async def fill(broker, partitions, count):
    """Records that go round the partitions, a millisecond apart."""
    await broker.create_topics({"orders": partitions})
    async with producing(broker) as producer:
        sent = [
            await producer.send("orders", b"value %d" % number, partition=number % partitions, timestamp_ms=1_000 + number)
            for number in range(count)
        ]
        await asyncio.gather(*sent)


async def test_pages_follow_each_other_in_the_order_of_time(broker, source):
    await fill(broker, 3, 100)
    page = await read_forward(source, "orders", await at_start(source, "orders"), 30)
    texts = [record.value.text for record in page.records]
    assert page.is_start
    while not page.is_end:
        page = await read_forward(source, "orders", page.following, 30)
        texts += [record.value.text for record in page.records]
    assert texts == [f"value {number}" for number in range(100)]
    assert page.is_end


async def test_pages_before_a_place_come_back_to_the_start(broker, source):
    await fill(broker, 3, 100)
    page = await read_back(source, "orders", await at_end(source, "orders"), 30)
    texts = [record.value.text for record in page.records]
    assert page.is_end
    while not page.is_start:
        page = await read_back(source, "orders", page.preceding, 30)
        texts = [record.value.text for record in page.records] + texts
    assert texts == [f"value {number}" for number in range(100)]


async def test_the_tail_goes_on_with_what_is_written_later(broker, source):
    await fill(broker, 2, 10)
    tail = await read_back(source, "orders", await at_end(source, "orders"), 3)
    assert [record.value.text for record in tail.records] == ["value 7", "value 8", "value 9"]
    assert (await read_forward(source, "orders", tail.following)).records == ()
    await broker.produce("orders", [b"later"], partition=1)
    assert [record.value.text for record in (await read_forward(source, "orders", tail.following)).records] == ["later"]


async def test_a_place_is_found_by_time_and_kept_as_text(broker, source):
    await fill(broker, 2, 10)
    place = await at_time(source, "orders", 1_004)
    assert Cursor.parse(str(place)) == place == Cursor.of({0: 2, 1: 2})
    assert await at_time(source, "orders", 9_999_999) == await at_end(source, "orders")
    assert await at_time(source, "orders", 1_004, [1]) == Cursor.of({1: 2})


async def test_markers_and_aborted_records_are_marked(broker, source):
    await broker.create_topics({"orders": 1})
    async with producing(broker, transactional_id="t") as producer:
        async with producer.transaction():
            await producer.send_and_wait("orders", b"committed")
        await producer.begin_transaction()
        await producer.send_and_wait("orders", b"aborted")
        await producer.abort_transaction()
        await broker.produce("orders", [b"plain"])
        async with producer.transaction():
            await producer.send_and_wait("orders", b"open")
            page = await read_forward(source, "orders", await at_start(source, "orders"))
            back = await read_back(source, "orders", await at_end(source, "orders"))
    marks = [(record.mark, record.control or record.value.text) for record in page.records]
    assert marks == [
        (Mark.COMMITTED, "committed"),
        (Mark.CONTROL, "commit"),
        (Mark.ABORTED, "aborted"),
        (Mark.CONTROL, "abort"),
        (Mark.PLAIN, "plain"),
        (Mark.OPEN, "open"),
    ]
    assert back.records == page.records
    assert page.records[0].producer_id >= 0 > page.records[4].producer_id


async def test_a_large_value_is_cut_and_read_in_full_on_demand(broker, source):
    await broker.create_topics({"orders": 1})
    value = b"x" * 1_000_000
    async with producing(broker, max_request_size=2_000_000) as producer:
        await producer.send_and_wait("orders", value, key=b"k", headers=[("h", b"1")])
    [shown] = (await read_forward(source, "orders", await at_start(source, "orders"))).records
    assert (shown.value.format, shown.value.is_cut, shown.value.size_bytes) == (Format.TEXT, True, 1_000_000)
    assert len(shown.value.text) < 100_000
    found = await raw_record(source, "orders", 0, 0)
    assert (found.key, found.value, found.headers) == (b"k", value, (("h", b"1"),))
    with pytest.raises(Missing, match="orders-0 at offset 7: there is no such record"):
        await raw_record(source, "orders", 0, 7)


async def test_a_search_finds_text_in_any_case_in_key_value_and_headers(broker, source):
    await broker.create_topics({"orders": 2})
    async with producing(broker) as producer:
        await producer.send_and_wait("orders", "Grüße aus KÖLN".encode(), partition=0)
        await producer.send_and_wait("orders", b"1", key=b"KOELN", partition=0)
        await producer.send_and_wait("orders", b"2", headers=[("city", "köln".encode())], partition=1)
        await producer.send_and_wait("orders", b"3", headers=[("Köln-id", b"")], partition=1)
    start = await at_start(source, "orders")
    found = await search(source, "orders", Search("köln"), cursor=start)
    assert offsets(found) == [(0, 0), (1, 0), (1, 1)]
    assert (found.is_done, found.scanned, found.left) == (True, 4, 0)
    only_value = await search(source, "orders", Search("köln", in_key=False, in_headers=False), cursor=start)
    assert offsets(only_value) == [(0, 0)]
    assert offsets(await search(source, "orders", Search("koel"), cursor=start)) == [(0, 1)]


async def test_a_search_in_slices_finds_each_match_once(broker, source, monkeypatch):
    monkeypatch.setattr(records, "_SEARCH_FETCH_BYTES", 16 * 1024)
    await broker.create_topics({"orders": 3})
    values = [json.dumps({"number": number, "is": "wanted" if number % 1_000 == 7 else "other"}) for number in range(20_000)]
    for index in range(3):
        await broker.produce("orders", values[index::3], partition=index)
    cursor, ends, found, slices = await at_start(source, "orders"), None, [], 0
    while True:
        part = await search(source, "orders", Search("WANTED"), cursor=cursor, ends=ends, limit=5, within_ms=20)
        found += [json.loads(record.value.text)["number"] for record in part.records]
        slices += 1
        assert part.unread == ()
        if part.is_done:
            break
        cursor, ends = part.following, part.ends
        # Later records are not waited for.
        await broker.produce("orders", ["wanted, but later"])
    assert sorted(found) == [number for number in range(20_000) if number % 1_000 == 7]
    assert slices > 1


async def test_batches_too_large_to_be_sent_together_are_read_too(broker, source, monkeypatch):
    monkeypatch.setattr(records, "_PAGE_FETCH_BYTES", 1_000)
    await broker.create_topics({"orders": 3})
    for index in range(3):
        await broker.produce("orders", [b"x" * 100] * 50, partition=index)
    page = await read_forward(source, "orders", await at_start(source, "orders"), 200)
    assert len(page.records) == 150
    assert {record.mark for record in page.records} == {Mark.PLAIN}
    assert len((await read_back(source, "orders", page.following, 200)).records) == 150


async def test_a_topic_that_is_not_there_is_missing(source):
    with pytest.raises(Missing, match="there is no such topic"):
        await at_end(source, "no-such-topic")


async def test_deleted_records_move_the_place_to_the_first_one_left(broker, source):
    await fill(broker, 1, 10)
    start = await at_start(source, "orders")
    broker.core.partitions.get("orders", 0).log.delete_records_before(6)
    page = await read_forward(source, "orders", start)
    assert offsets(page) == [(0, 6), (0, 7), (0, 8), (0, 9)]
    assert page.is_start
    assert page.preceding == Cursor.of({0: 6})
