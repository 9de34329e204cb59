"""ShareAcknowledge on a broker: its session, and the errors of partitions."""

import asyncio
from uuid import UUID

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.api_versions import ApiVersionsRequest
from odradek.protocol.message_types.share_acknowledge import ShareAcknowledgeRequest
from odradek.testing import SocketlessBroker
from odradek.timing.reply import Reply
from tests.broker.api.bed import ask, make_broker
from tests.broker.api.in_process import CONFIGS, Node
from tests.broker.api.share_members import ACCEPT, REJECT, RELEASE, RENEW, Member, begin_group, errors, told


@pytest.fixture
async def member(node):
    """A member that has acquired records 0 to 2 of partition 0."""
    topic_id = await node.create(partition_count=2)
    await begin_group(node, topic_id, 0, 1)
    await node.produce(values=[b"a", b"b", b"c"])
    member = Member(node, topic_id)
    assert told(await member.fetch(0, 1)) == {0: ((0, 2, 1), "0-2"), 1: ()}
    return member


def test_without_the_feature_the_request_is_refused():
    broker = make_broker("t")
    broker.controller.image.features.pop("share.version", None)
    assert ask(broker, ApiKey.SHARE_ACKNOWLEDGE, group_id="g", member_id="m").error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_records_are_accepted_released_and_rejected(member):
    response = await member.acknowledge((0, 0, 2, ACCEPT, RELEASE, REJECT))
    assert errors(response) == {0: None}
    assert response.acquisition_lock_timeout_ms == 30_000
    assert told(await member.fetch()) == {0: ((1, 1, 2), "0-2")}
    assert errors(await member.acknowledge((0, 1, 1, RENEW), is_renew_ack=True)) == {0: None}


async def test_other_requests_are_answered_while_thousands_of_records_are_acknowledged():
    broker = SocketlessBroker(configs=CONFIGS | {"group.share.partition.max.record.locks": "4000"})
    await broker.start()
    node = Node(broker)
    topic_id = await node.create()
    await begin_group(node, topic_id)
    await node.produce(values=[b"v"] * 4_000)
    member = Member(node, topic_id)
    assert told(await member.fetch(0, max_records=4_000)) == {0: ((0, 3_999, 1), "0-3999")}
    acknowledging = asyncio.create_task(member.acknowledge((0, 0, 3_999, *[ACCEPT, RELEASE] * 2_000)))
    await asyncio.sleep(0)
    for _ in range(3):
        await node.ask(ApiKey.API_VERSIONS, ApiVersionsRequest("a", "1"))
        assert not acknowledging.done()
    assert errors(await acknowledging) == {0: None}
    assert len(told(await member.fetch(max_records=4_000))[0]) == 2_001
    await broker.stop()


async def test_a_request_belongs_to_its_session(member):
    assert (await member.acknowledge(epoch=0)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert (await member.acknowledge(epoch=5)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    stranger = Member(member.node, member.topic_id, "stranger")
    for epoch in (1, -1):
        assert (await stranger.acknowledge(epoch=epoch)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    for request in (ShareAcknowledgeRequest(member_id="m"), ShareAcknowledgeRequest(group_id="g", member_id="")):
        assert (await member.node.ask(ApiKey.SHARE_ACKNOWLEDGE, request)).error_code == ErrorCode.INVALID_REQUEST


async def test_each_wrong_acknowledgement_gets_kafkas_error_and_changes_nothing(member):
    for batches, expected in (
        ([(0, 2, 1, ACCEPT)], "INVALID_REQUEST"),
        ([(0, 0, 1, ACCEPT), (0, 0, 1, ACCEPT)], "INVALID_REQUEST"),
        ([(0, 0, 2, ACCEPT, ACCEPT)], "INVALID_REQUEST"),
        ([(0, 0, 2)], "INVALID_REQUEST"),
        ([(0, 0, 2, 5)], "INVALID_REQUEST"),
        ([(0, 0, 2, -1)], "INVALID_REQUEST"),
        ([(0, 0, 2, RENEW)], "INVALID_REQUEST"),
        ([(0, 0, 3, ACCEPT)], "INVALID_REQUEST"),
        ([(1, 0, 0, ACCEPT)], "INVALID_RECORD_STATE"),
        ([(5, 0, 0, ACCEPT)], "UNKNOWN_TOPIC_OR_PARTITION"),
    ):
        assert errors(await member.acknowledge(*batches)) == {batches[0][0]: expected}
    thief = Member(member.node, member.topic_id, "thief")
    await thief.fetch(0)
    assert errors(await thief.acknowledge((0, 0, 2, ACCEPT))) == {0: "INVALID_RECORD_STATE"}
    elsewhere = Member(member.node, UUID(int=9), member.name)
    elsewhere.epoch = member.epoch
    assert errors(await elsewhere.acknowledge((0, 0, 2, ACCEPT))) == {0: "UNKNOWN_TOPIC_ID"}
    member.epoch = elsewhere.epoch
    assert errors(await member.acknowledge((0, 0, 2, ACCEPT), (1, 0, 0, ACCEPT))) == {0: None, 1: "INVALID_RECORD_STATE"}


async def test_the_final_epoch_ends_the_session(member):
    assert errors(await member.acknowledge((0, 0, 0, ACCEPT), epoch=-1)) == {0: None}
    assert (await member.acknowledge(epoch=1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    other = Member(member.node, member.topic_id, "other")
    assert told(await other.fetch(0, max_wait_ms=1_000)) == {0: ((1, 2, 2), "0-2")}


@pytest.mark.interpreted
async def test_the_late_answer_to_a_final_epoch_leaves_the_members_next_session_alone(member, monkeypatch):
    held = Reply()
    monkeypatch.setattr(member.node.core.share_persister, "write", lambda *_: held)
    ending = asyncio.create_task(member.acknowledge((0, 0, 0, ACCEPT), epoch=-1))
    await asyncio.sleep(0)
    assert told(await member.fetch(0, epoch=0)) == {0: ()}
    held.complete(None)
    assert errors(await ending) == {0: None}
    assert told(await member.fetch(epoch=1)) == {}
