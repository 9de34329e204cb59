"""Replays: of the recorded session, and of what a broker may answer otherwise."""

import asyncio

import pytest
from click.testing import CliRunner

from odradek.cli.main import command
from odradek.common.context import CLOSE_CONNECTION
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.record_batch import ensure_intact, read_header
from odradek.testing import Broker, Timeline, replay
from odradek.testing.timeline.likeness import IdPairs
from odradek.testing.timeline.messages import OmittedRecords, Produce, ProducePartition, ProduceTopic


class Instead:
    """A gate that answers one API otherwise, so many times."""

    def __init__(self, api, change, times=1_000):
        self.api, self.change, self.times = api, change, times

    def admit(self, context, request):
        pass

    def release(self, context, response):
        if context.api_key is not self.api or not self.times:
            return response
        self.times -= 1
        return self.change(response)


def found(timeline, api, change, times=1_000, timeout_s=10.0):
    with Broker() as broker:
        broker._thread.broker.add_gate(Instead(api, change, times))
        return replay(timeline, broker.bootstrap_servers, timeout_s=timeout_s)


def test_another_broker_answers_the_same_under_other_ids(recorded):
    with Broker(topics={"before": 1}) as broker:
        # Ids that were given are not given again.
        broker.produce("before", ["a record"])
        first = replay(recorded, broker.bootstrap_servers)
    assert (first.sent, first.differences) == (len(recorded.exchanges), [])


def test_an_answer_that_differs_is_told_with_its_field(recorded):
    result = found(recorded, ApiKey.FIND_COORDINATOR, lambda _: _._replace(coordinators=()))
    differing = {(each.exchange.api, each.path) for each in result.differences}
    assert differing == {(ApiKey.FIND_COORDINATOR, "coordinators[]")}, str(result)
    assert str(result.differences[0]) in str(result)


def test_an_error_is_the_difference_and_not_what_follows_from_it(recorded):
    wrong = ErrorCode.UNKNOWN_MEMBER_ID
    result = found(recorded, ApiKey.SYNC_GROUP, lambda _: _._replace(error_code=wrong, assignment=b"", protocol_name=None))
    assert {(each.path, each.recorded, each.replayed) for each in result.differences} == {("error_code", 0, wrong)}


def test_a_connection_that_is_closed_instead_of_an_answer_is_a_difference(recorded):
    result = found(recorded, ApiKey.END_TXN, lambda _: CLOSE_CONNECTION)
    assert {(each.exchange.api, each.path, each.replayed) for each in result.differences} >= {
        (ApiKey.END_TXN, "connection", "closed")
    }


def test_a_broker_that_is_not_ready_is_asked_again(recorded):
    early = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    result = found(recorded, ApiKey.OFFSET_COMMIT, lambda _: _refused(_, early), times=2)
    assert (result.sent_again, result.differences) == (1, [])


def _refused(response, code):
    return response._replace(
        topics=[
            topic._replace(partitions=[each._replace(error_code=code) for each in topic.partitions]) for topic in response.topics
        ]
    )


def test_a_broker_that_never_is_ready_differs(recorded):
    early = ErrorCode.NOT_COORDINATOR
    result = found(recorded.where(api="OffsetCommit"), ApiKey.OFFSET_COMMIT, lambda _: _refused(_, early), timeout_s=0.1)
    assert {each.path for each in result.differences} == {"topics.partitions.error_code"}


def test_an_id_that_stands_for_two_is_a_difference(recorded):
    one = _answers(recorded, ApiKey.INIT_PRODUCER_ID)[0]
    ids = IdPairs()
    assert ids.pair("producer", one.producer_id, 5)
    assert ids.pair("producer", one.producer_id, 5)
    assert not ids.pair("producer", one.producer_id, 6)
    assert not ids.pair("producer", one.producer_id + 1, 5)


def _answers(timeline, api):
    return [each.answer for each in timeline.where(api=api).exchanges]


def test_batches_go_out_with_the_id_of_their_new_producer(recorded):
    ids = IdPairs()
    [produce] = recorded.where(api="Produce").exchanges
    ids.pair("producer", _answers(recorded, ApiKey.INIT_PRODUCER_ID)[0].producer_id, 77)
    sent = ids.translated("", produce.request).topic_data[0].partition_data[0].records
    assert int.from_bytes(sent[43:51]) == 77
    ensure_intact(read_header(sent), sent)


def _but(exchange, **changes):
    return type(exchange)(**{**{name: getattr(exchange, name) for name in exchange.__dataclass_fields__}, **changes})


def test_a_timeline_without_its_records_is_refused(recorded):
    [produce] = recorded.where(api="Produce").exchanges
    request = Produce(topic_data=(ProduceTopic("t", None, (ProducePartition(0, OmittedRecords(5)),)),))
    with Broker() as broker, pytest.raises(ValueError, match="without records"):
        replay(Timeline([_but(produce, request=request)]), broker.bootstrap_servers)


def test_the_command_prints_differences_and_counts_and_exits_so(recorded, tmp_path):
    path = tmp_path / "session.jsonl"
    recorded.save(path)
    with Broker() as broker:
        arguments = ["replay", str(path), "--bootstrap-server", broker.bootstrap_servers]
        same = CliRunner().invoke(command, arguments)
        # There is a topic now, and offsets are others.
        other = CliRunner().invoke(command, arguments)
    gone = CliRunner().invoke(command, arguments)
    path.write_text("{}")
    no_timeline = CliRunner().invoke(command, arguments)
    assert (same.exit_code, same.output) == (0, f"{len(recorded.exchanges)} requests, 0 of them sent again, 0 differences\n")
    assert (other.exit_code, "CREATE_TOPICS" in other.output) == (1, True)
    assert [(each.exit_code, each.output.count("\n")) for each in (gone, no_timeline)] == [(2, 1), (2, 1)]


async def test_a_broker_on_the_callers_loop_is_replayed_to_from_a_thread(recorded):
    async with Broker() as broker:
        result = await asyncio.to_thread(replay, recorded, broker.bootstrap_servers)
    assert result.differences == []
