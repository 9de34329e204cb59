"""A recorded session, looked at: filters, text, files, the diagram."""

import json
from html.parser import HTMLParser

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.testing import Timeline
from odradek.testing.timeline.messages import record_count


def test_requests_come_decoded_with_their_answers(recorded):
    [produce] = recorded.where(api="Produce").exchanges
    [topic] = produce.request.topic_data
    assert (produce.client_id, topic.name, produce.outcome, produce.errors) == ("till", "orders", "answered", [])
    assert record_count(topic.partition_data[0].records) == 1
    assert produce.answer.responses[0].partition_responses[0].base_offset == 0
    fetched = [
        partition.records
        for fetch in recorded.where(api=ApiKey.FETCH).exchanges
        for topic in fetch.answer.responses
        for partition in topic.partitions
        if partition.records
    ]
    assert b"an order" in b"".join(map(bytes, fetched))


def test_each_connection_has_a_number_and_the_tests_own_calls_have_0(recorded):
    assert [each.api for each in recorded.where(connection=0).exchanges] == [ApiKey.CREATE_TOPICS]
    assert {each.connection for each in recorded.where(client_id="till").exchanges}.isdisjoint(
        each.connection for each in recorded.where(client_id="biller").exchanges
    )


def test_an_answer_comes_after_its_request_and_before_the_next_of_its_connection(recorded):
    for number in {each.connection for each in recorded.exchanges}:
        places = [place for each in recorded.where(connection=number).exchanges for place in (each.begun, each.ended)]
        assert places == sorted(places)


def test_the_states_of_a_transaction_are_decisions(recorded):
    found = [each.what for each in recorded.where(transactional_id="sales").decisions]
    assert found == [f"transaction {state}" for state in ("Empty", "Ongoing", "PrepareCommit", "CompleteCommit")]


def test_the_rebalances_of_a_group_are_decisions(recorded):
    whats = [each.what for each in recorded.where(group="billing").decisions]
    assert (whats[0], whats[-1]) == ("rebalance completed", "rebalance left the group empty")


@pytest.mark.parametrize(
    ("asked", "has", "has_not"),
    [
        (
            {"group": "billing"},
            {"FIND_COORDINATOR", "JOIN_GROUP", "OFFSET_COMMIT", "LEAVE_GROUP"},
            {"PRODUCE", "END_TXN", "FETCH"},
        ),
        ({"transactional_id": "sales"}, {"FIND_COORDINATOR", "INIT_PRODUCER_ID", "PRODUCE", "END_TXN"}, {"JOIN_GROUP", "FETCH"}),
        ({"topic": "orders"}, {"CREATE_TOPICS", "METADATA", "PRODUCE", "FETCH", "OFFSET_COMMIT"}, {"JOIN_GROUP", "END_TXN"}),
        ({"error": "MEMBER_ID_REQUIRED"}, {"JOIN_GROUP"}, {"SYNC_GROUP", "PRODUCE"}),
        ({"error": "ANY"}, {"JOIN_GROUP"}, {"SYNC_GROUP", "PRODUCE"}),
        ({"group": "another"}, set(), {"JOIN_GROUP"}),
    ],
)
def test_a_filter_keeps_what_is_asked_for(recorded, asked, has, has_not):
    names = {each.api.name for each in recorded.where(**asked).exchanges}
    assert has <= names
    assert not has_not & names


def test_an_api_that_is_none_is_refused(recorded):
    with pytest.raises(ValueError, match="JOIN_GROUP"):
        recorded.where(api="Join")


def test_the_text_has_a_line_for_each_event(recorded):
    lines = recorded.text(width=120).splitlines()
    assert len(lines) == len(recorded)
    assert max(map(len, lines)) == 120
    [line] = str(recorded.where(api="EndTxn")).splitlines()
    assert "till" in line
    assert "END_TXN v3 transactional_id=sales committed=True -> NONE, " in line


def test_a_timeline_that_was_saved_is_the_same(recorded, tmp_path):
    recorded.save(tmp_path / "session.jsonl")
    loaded = Timeline.load(tmp_path / "session.jsonl")
    assert loaded.events == recorded.events
    assert str(loaded) == str(recorded)


@pytest.mark.parametrize("line", ["nothing", "{}", '{"api": "NOTHING"}', "[]", '{"decision": "x"}'])
def test_a_file_that_is_no_timeline_is_refused_with_its_line(recorded, tmp_path, line):
    path = tmp_path / "session.jsonl"
    recorded.save(path)
    lines = path.read_text().splitlines()
    lines[3] = line
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"session.jsonl, line 4: "):
        Timeline.load(path)
    path.write_text(json.dumps({"odradek_timeline": 99}))
    with pytest.raises(ValueError, match=r"line 1: not a timeline: its first line must be"):
        Timeline.load(path)


class _Page(HTMLParser):
    """What a page has of arrows, and what it would load."""

    def __init__(self, text):
        super().__init__()
        self.arrows = 0
        self.details = set()
        self.links = set()
        self.loads = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.arrows += tag == "line" and "marker-end" in named
        if tag == "details":
            self.details.add("#" + named["id"])
        if tag == "a":
            self.links.add(named["href"])
        if tag in {"script", "link", "img", "iframe"} or "src" in named:
            self.loads.append(tag)


def test_the_diagram_has_an_arrow_for_each_request_and_each_answer_and_loads_nothing(recorded, tmp_path):
    recorded.save_html(tmp_path / "session.html")
    page = _Page((tmp_path / "session.html").read_text())
    assert page.arrows == 2 * len(recorded.exchanges)
    assert page.links == page.details
    assert page.loads == []


def test_text_of_a_client_is_no_html(recorded):
    [exchange, *_] = recorded.exchanges
    page = Timeline([type(exchange)(**{**_fields(exchange), "client_id": "<script>alert(1)</script>", "connection": 7})]).html()
    assert _Page(page).loads == []


def _fields(exchange):
    return {name: getattr(exchange, name) for name in exchange.__dataclass_fields__}
