"""OffsetFetch over a socket: one group or many, named topics or all, by name or by id."""

import pytest

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.broker.api.offset_requests import UNKNOWN_ID, commit

VERSIONS = range(SERVED[ApiKey.OFFSET_FETCH].min_version, SERVED[ApiKey.OFFSET_FETCH].max_version + 1)


def fetch(client, version, group_id, topics, **fields):
    """``topics``: (name, id, indexes) or None for all. The group's answer, whatever the version calls it."""
    if topics is not None:
        topics = [
            {**({"topic_id": topic_id} if version >= 10 else {"name": name}), "partition_indexes": indexes}
            for name, topic_id, indexes in topics
        ]
    if version < 8:
        return client.call(ApiKey.OFFSET_FETCH, version, group_id=group_id, topics=topics, **fields)
    response = client.call(ApiKey.OFFSET_FETCH, version, groups=[{"group_id": group_id, "topics": topics}], **fields)
    (group,) = response.groups
    assert group.group_id == group_id
    return group


def offsets(answer):
    """{topic: {partition: offset}} by name or id."""
    return {
        getattr(topic, "name", None) or topic.topic_id: {
            partition.partition_index: partition.committed_offset for partition in topic.partitions
        }
        for topic in answer.topics
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_fetches_what_was_committed(client, topic, new_name, version):
    name, topic_id = topic
    group_id = new_name()
    commit(client, 9, [(name, topic_id, {0: 7})], group_id)

    answer = fetch(client, version, group_id, [(name, topic_id, (0, 1))])

    assert offsets(answer) == {(topic_id if version >= 10 else name): {0: 7, 1: -1}}
    found, missing = answer.topics[0].partitions
    assert (found.metadata, missing.metadata) == ("m", "")
    assert {found.error_code, missing.error_code} == {ErrorCode.NONE}
    if version >= 5:
        assert (found.committed_leader_epoch, missing.committed_leader_epoch) == (-1, -1)
    if version >= 2:
        assert answer.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_all_topics_are_fetched_for_null(client, topic, new_name, version):
    name, topic_id = topic
    group_id = new_name()
    commit(client, 9, [(name, topic_id, {0: 7, 1: 8})], group_id)

    assert offsets(fetch(client, version, group_id, None)) == {(topic_id if version >= 10 else name): {0: 7, 1: 8}}
    assert offsets(fetch(client, version, new_name(), None)) == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_no_topics_are_fetched_for_none(client, topic, new_name, version):
    group_id = new_name()
    commit(client, 9, [(*topic, {0: 7})], group_id)

    assert offsets(fetch(client, version, group_id, [])) == {}


def test_many_groups_are_answered_in_order(client, topic, new_name):
    name, topic_id = topic
    group_ids = [new_name() for _ in range(5)]
    for offset, group_id in enumerate(group_ids):
        commit(client, 9, [(name, topic_id, {0: offset})], group_id)

    for require_stable in (False, True):
        groups = [{"group_id": group_id, "topics": None} for group_id in group_ids]
        response = client.call(ApiKey.OFFSET_FETCH, 9, groups=groups, require_stable=require_stable)
        assert [group.group_id for group in response.groups] == group_ids
        assert [offsets(group) for group in response.groups] == [{name: {0: offset}} for offset in range(5)]


@pytest.mark.parametrize("require_stable", [False, True])
def test_no_groups_are_no_answers(client, require_stable):
    assert client.call(ApiKey.OFFSET_FETCH, 9, groups=[], require_stable=require_stable).groups == ()


@pytest.mark.parametrize("require_stable", [False, True])
def test_an_unknown_topic_id_is_refused_and_the_rest_is_fetched(client, topic, new_name, require_stable):
    name, topic_id = topic
    group_id = new_name()
    commit(client, 9, [(name, topic_id, {0: 7})], group_id)
    asked = [("", UNKNOWN_ID, (3,)), ("", None, (4,)), (name, topic_id, (0,))]

    answer = fetch(client, 10, group_id, asked, require_stable=require_stable)

    assert [(each.topic_id, each.partitions[0].committed_offset, each.partitions[0].error_code) for each in answer.topics] == [
        (topic_id, 7, ErrorCode.NONE),
        (UNKNOWN_ID, -1, ErrorCode.UNKNOWN_TOPIC_ID),
        (None, -1, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize(
    ("version", "in_group", "in_partitions"), [(1, False, True), (2, True, True), (7, True, True), (8, True, False)]
)
async def test_offsets_of_a_group_that_is_loading_are_refused_where_clients_look_for_it(node, version, in_group, in_partitions):
    """aiokafka fetches with version 3 and looks at the partitions only: without an error there it begins anew."""
    await node.stable_member()
    await node.restart()

    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1))]
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    (group,) = (await node.ask(ApiKey.OFFSET_FETCH, asked, version)).groups

    loading, none = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE
    assert group.error_code == (loading if in_group else none)
    told = [(partition.committed_offset, partition.error_code) for topic in group.topics for partition in topic.partitions]
    assert told == ([(-1, loading)] * 2 if in_partitions else [])
