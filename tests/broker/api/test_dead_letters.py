"""Dead letters of share groups (KIP-1191): where they go, what they have, and when there are none."""

import asyncio

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.compression import GZIP, NONE
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch, read_records
from tests.broker.api.consumer_requests import set_configs
from tests.broker.api.in_process import Node, new_broker
from tests.broker.api.share_members import ACCEPT, REJECT, RELEASE, Member, begin_group, errors, told

VALUES = [b"a", b"b", b"c"]
AUTO = "errors_deadletterqueue_auto_create_topics_enable"


@pytest.fixture
async def node():
    async with new_broker(**{AUTO: "true"}) as broker:
        node = Node(broker)
        await turn_on(node)
        yield node


async def turn_on(node):
    update = FeatureUpdateKey(feature="share.version", max_version_level=2, upgrade_type=1)
    response = await node.ask(ApiKey.UPDATE_FEATURES, UpdateFeaturesRequest(feature_updates=[update]))
    assert response.error_code == ErrorCode.NONE


async def reading(node, **configs):
    """A member of a group with these configs, which has acquired records 0 to 2 of partition 1 of topic ``t``."""
    topic_id = await node.create(partition_count=2)
    await begin_group(node, topic_id, 1)
    assert (await set_configs(node, "g", **configs))[0] == ErrorCode.NONE
    await node.produce(index=1, values=VALUES, timestamp=node.broker.clock.now_ms())
    member = Member(node, topic_id)
    assert told(await member.fetch(1)) == {1: ((0, 2, 1), "0-2")}
    return member


async def start_offset(node):
    """The start offset of the only share partition, once all its records are done with."""
    (shared,) = node.core.share_partitions
    for _ in range(1_000):
        if not shared.window.batches:
            break
        await asyncio.sleep(0)
    assert not shared.window.batches
    return shared.window.start_offset


def letters(node, topic, index=0):
    """The (key, value, headers) of the records of a partition."""
    log = node.core.partitions.get(topic, index).log
    found = log.read(0, 2**20, upper_offset=log.log_end_offset, min_one_batch=True) if log.log_end_offset else None
    data = b"" if found is None else found.read()
    return [
        (record.key, record.value, {name.removeprefix("__dlq.errors."): value.decode() for name, value in record.headers})
        for position, _ in iter_batches(data)
        for record in read_records(data, position)
    ]


async def test_rejected_and_exhausted_records_go_to_the_groups_topic_which_is_created(node):
    names = {"errors_deadletterqueue_topic_name": "dlq.g", "errors_deadletterqueue_copy_record_enable": "true"}
    member = await reading(node, **names, share_delivery_count_limit=2)
    assert errors(await member.acknowledge((1, 0, 2, REJECT, ACCEPT, RELEASE))) == {1: None}
    assert told(await member.fetch(max_wait_ms=1_000)) == {1: ((2, 2, 2), "0-2")}
    assert errors(await member.acknowledge((1, 2, 2, RELEASE))) == {1: None}
    about = {"topic": "t", "partition": "1", "group": "g"}
    assert letters(node, "dlq.g") == [
        (None, b"a", {**about, "offset": "0", "delivery.count": "1", "message": "Offset rejected by client."}),
        (None, b"c", {**about, "offset": "2", "delivery.count": "2", "message": "Offset delivery count exceeded the threshold."}),
    ]
    created = node.core.controller.image.configs(2, "dlq.g")
    assert created == {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
    assert await start_offset(node) == 3


async def test_a_letter_has_headers_only_unless_records_are_copied_and_large_ones_take_several_batches(node):
    await node.create("dlq.g", partition_count=2, errors_deadletterqueue_group_enable="true", max_message_bytes="500")
    member = await reading(node, errors_deadletterqueue_topic_name="dlq.g")
    assert errors(await member.acknowledge((1, 0, 2, REJECT))) == {1: None}
    assert await start_offset(node) == 3
    # Partition 1 goes to partition 1 modulo 2.
    assert [(value, headers["offset"]) for _, value, headers in letters(node, "dlq.g", 1)] == [
        (None, "0"),
        (None, "1"),
        (None, "2"),
    ]


@pytest.mark.parametrize("compression", [NONE, GZIP])
async def test_a_record_that_is_too_large_for_the_topic_is_told_by_its_headers_and_the_others_are_copied(node, compression):
    await node.create("dlq.g", errors_deadletterqueue_group_enable="true", max_message_bytes="1000")
    names = {"errors_deadletterqueue_topic_name": "dlq.g", "errors_deadletterqueue_copy_record_enable": "true"}
    member = await reading(node, **names)
    assert errors(await member.acknowledge((1, 0, 2, ACCEPT))) == {1: None}
    now_ms = node.broker.clock.now_ms()
    for values in ([b"a" * 2_000], [b"b"]):
        batch = build_batch([Record(value=each, timestamp=now_ms) for each in values], compression=compression)
        assert (await node.produce(topics=[("t", [(1, batch)])])).error_code == ErrorCode.NONE
    assert told(await member.fetch()) == {1: ((3, 4, 1), "3-4")}
    assert errors(await member.acknowledge((1, 3, 4, REJECT))) == {1: None}
    assert [(value, headers["offset"]) for _, value, headers in letters(node, "dlq.g")] == [(None, "3"), (b"b", "4")]
    assert await start_offset(node) == 5


@pytest.mark.parametrize("case", ["missing", "not enabled", "wrong prefix", "off"])
async def test_a_record_whose_letter_may_not_be_written_is_archived_all_the_same(case):
    async with new_broker(**{AUTO: "false"}) as broker:
        node = Node(broker)
        if case != "off":
            await turn_on(node)
        name = "other" if case == "wrong prefix" else "dlq.g"
        if case in {"not enabled", "wrong prefix"}:
            await node.create(name, errors_deadletterqueue_group_enable=str(case == "wrong prefix").lower())
        member = await reading(node, errors_deadletterqueue_topic_name=name)
        assert errors(await member.acknowledge((1, 0, 2, REJECT))) == {1: None}
        assert await start_offset(node) == 3
        if case in {"not enabled", "wrong prefix"}:
            assert letters(node, name) == []
