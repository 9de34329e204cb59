"""A topic: its records with a tail, jumps and a search; its partitions and segments; its configs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from odradek.page.facts import records
from odradek.page.facts import topic as facts
from odradek.page.facts.decoding import Format, show
from odradek.page.facts.records import Cursor, Found, RecordPage, Search
from odradek.page.facts.source import Missing
from odradek.page.views import View, wanted, whole

if TYPE_CHECKING:
    from odradek.page.facts.topic import TopicFacts
    from odradek.page.views import Call, Query
    from odradek.protocol.records import Record

RECORDS: Final = 50
MOST_FOUND: Final = 200
# A larger record is not offered for editing.
MOST_EDITED_BYTES: Final = 256 * 1024
INDEX_ENTRIES: Final = 100
_FIELDS: Final = ("key", "value", "headers")


class Reading(NamedTuple):
    """The records to show. ``is_tail``: they follow the end of the topic. ``is_latest_first`` is the order of the rows."""

    page: RecordPage
    is_tail: bool
    is_latest_first: bool


def format_of(query: Query) -> Format | None:
    """Return the wanted format; None if each field's own is wanted."""
    return next((each for each in Format if each.value == query.text("as")), None)


def moment_ms(text: str) -> int | None:
    """Return a time in ms since the epoch: a number, or ISO 8601, in UTC unless it says otherwise; None if it is neither."""
    if (number := whole(text)) is not None:
        return number
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return int((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)


def cursor_of(text: str) -> Cursor:
    """Return the cursor that an address has. Raises Missing."""
    try:
        return Cursor.parse(text)
    except ValueError:
        raise Missing(f"{text[:100]!r} is not a place in a topic: give partition:offset,partition:offset") from None


async def load(call: Call) -> dict[str, Any]:
    """Return the values of the records' template. Raises FactError."""
    name = wanted(call, "name", "topic")
    query = call.query
    partition = query.number("partition")
    values = {
        "topic": await facts.topic(call.source, name),
        "partition": partition,
        "as_": query.text("as"),
        "text": query.text("q"),
        "fields": query.texts("in") or list(_FIELDS),
        "offset": query.text("offset"),
        "time": query.text("time"),
        "edited": await _edited(call, name),
        "reading": None,
        "search": None,
    }
    if query.text("q"):
        found = await _search(call, name, partition)
        return {**values, "search": found, "is_unfinished": not found.is_done}
    # Only the tail moves.
    reading: Reading | None = call.memory.get("reading")
    if reading is None or reading.is_tail:
        reading = call.memory["reading"] = await _read(call, name, partition)
    return {**values, "reading": reading}


async def _read(call: Call, name: str, partition: int | None) -> Reading:
    """Return the records that the query asks for."""
    source, query, as_ = call.source, call.query, format_of(call.query)
    only = None if partition is None else [partition]
    if query.text("before"):
        return Reading(await records.read_back(source, name, cursor_of(query.text("before")), RECORDS, as_), False, True)
    if query.text("time"):
        time_ms = moment_ms(query.text("time"))
        if time_ms is None:
            raise Missing(f"{query.text('time')[:100]!r} is not a time: give 2026-01-31T12:00:00, or ms since 1970")
        cursor = await records.at_time(source, name, time_ms, only)
    elif query.text("offset"):
        offset = query.number("offset")
        if offset is None:
            raise Missing(f"{query.text('offset')[:100]!r} is not an offset")
        cursor = Cursor.of({index: offset for index, _ in (await records.at_start(source, name, only)).offsets})
    elif query.text("after"):
        cursor = cursor_of(query.text("after"))
    elif query.text("from") == "start":
        cursor = await records.at_start(source, name, only)
    else:
        return Reading(await records.read_back(source, name, await records.at_end(source, name, only), RECORDS, as_), True, True)
    return Reading(await records.read_forward(source, name, cursor, RECORDS, as_), False, False)


class Progress(NamedTuple):
    """A search so far."""

    last: Found
    records: tuple[records.ShownRecord, ...]
    scanned: int

    @property
    def is_done(self) -> bool:
        """Return whether it goes on no further by itself."""
        return self.last.is_done or len(self.records) >= MOST_FOUND


async def _search(call: Call, name: str, partition: int | None) -> Progress:
    """Return a search, one slice further than at the last rendering."""
    before: Progress | None = call.memory.get("search")
    if before is not None and before.is_done:
        return before
    query = call.query
    fields = query.texts("in") or _FIELDS
    what = Search(query.text("q"), "key" in fields, "value" in fields, "headers" in fields)
    if before is not None:
        cursor, ends, known, scanned = before.last.following, before.last.ends, before.records, before.scanned
    else:
        start = query.text("after")
        only = None if partition is None else [partition]
        cursor = cursor_of(start) if start else await records.at_start(call.source, name, only)
        ends, known, scanned = None, (), 0
    found = await records.search(call.source, name, what, cursor=cursor, ends=ends, limit=MOST_FOUND - len(known))
    progress = call.memory["search"] = Progress(found, (*known, *found.records), scanned + found.scanned)
    return progress


class Edited(NamedTuple):
    """A record in the form. ``reason`` says why it is not there."""

    partition: int
    key: str | None
    value: str | None
    headers: str
    is_hex: bool
    reason: str = ""


async def _edited(call: Call, name: str) -> Edited | None:
    """Return the record that is to be edited and sent again; None if there is none."""
    place = call.query.text("edit")
    if not place:
        return None
    [(partition, offset)] = cursor_of(place).offsets[:1] or [(-1, -1)]
    if "edited" not in call.memory:
        record = await records.raw_record(call.source, name, partition, offset)
        call.memory["edited"] = _form_of(partition, record)
    edited: Edited = call.memory["edited"]
    return edited


def _form_of(partition: int, record: Record) -> Edited:
    fields = [record.key, record.value, *(value for _, value in record.headers)]
    if sum(len(each) for each in fields if each is not None) > MOST_EDITED_BYTES:
        return Edited(partition, None, "", "", False, "This record is too large to be edited here.")
    is_hex = not all(each is None or _is_typed(each) for each in fields)
    key, value, *others = (None if each is None else bytes(each).hex(" ") if is_hex else bytes(each).decode() for each in fields)
    lines = [str(name) if text is None else f"{name}={text}" for (name, _), text in zip(record.headers, others, strict=True)]
    return Edited(partition, key, value, "\n".join(lines), is_hex)


def _is_typed(data: bytes | memoryview) -> bool:
    """Return whether a form returns these bytes as they are."""
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        return False
    return "\r" not in text and "\0" not in text


async def load_log(call: Call) -> dict[str, Any]:
    """Return the values of the partitions' template. Raises FactError."""
    name = wanted(call, "name", "topic")
    found = await facts.topic(call.source, name)
    partition = call.query.number("partition")
    if partition is None:
        partition = next((row.about.partition_index for row in found.partitions if row.is_here), None)
    values: dict[str, Any] = {"topic": found, "partition": partition, "log": None, "entries": None, "hidden_log": ""}
    if partition is None:
        return values
    try:
        values["log"] = await facts.segments(call.source, name, partition)
    except Missing as error:
        values["hidden_log"] = error.reason
        return values
    base, kind = call.query.number("segment"), call.query.text("index")
    if base is not None and kind in ("offset", "time"):
        first = call.query.number("first") or 0
        entries = await facts.index_entries(call.source, name, partition, base, kind, first, INDEX_ENTRIES)
        values |= {"entries": entries, "index_base": base, "index_kind": kind, "index_first": first, "index_step": INDEX_ENTRIES}
    return values


async def load_configs(call: Call) -> dict[str, Any]:
    """Return the values of the configs' template. Raises FactError."""
    found: TopicFacts = await facts.topic(call.source, wanted(call, "name", "topic"))
    own = [row for row in found.configs if row.source == "topic"]
    return {"topic": found, "own": own, "others": [row for row in found.configs if row.source != "topic"]}


async def load_record(call: Call) -> dict[str, Any]:
    """Return the values of one record's template. Raises FactError."""
    name, partition, offset = record_place(call)
    record = call.memory.get("record")
    if record is None:
        record = call.memory["record"] = await records.raw_record(call.source, name, partition, offset)
    as_ = format_of(call.query)
    return {
        "name": name,
        "partition": partition,
        "offset": offset,
        "at_ms": record.timestamp,
        "key": show(record.key, as_),
        "value": show(record.value, as_),
        "headers": [(header, show(value, as_)) for header, value in record.headers],
        "as_": call.query.text("as"),
        "formats": [each.value for each in (Format.TEXT, Format.JSON, Format.MESSAGEPACK, Format.HEX)],
    }


def record_place(call: Call) -> tuple[str, int, int]:
    """Return topic, partition and offset of the query. Raises Missing."""
    name, partition, offset = wanted(call, "name", "topic"), call.query.number("partition"), call.query.number("offset")
    if partition is None or offset is None:
        raise Missing("the address names no partition and offset")
    return name, partition, offset


TOPIC = View("topic", load, "overview")
TOPIC_LOG = View("topic-log", load_log, "overview")
TOPIC_CONFIGS = View("topic-configs", load_configs, "overview")
RECORD = View("record", load_record, "overview")
