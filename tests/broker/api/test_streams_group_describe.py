"""StreamsGroupDescribe, and streams groups in ListGroups."""

from odradek.broker.api.acl_messages import GROUP_OPERATIONS, NO_OPERATIONS
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.broker.api.consumer_requests import ask, beat
from tests.broker.api.streams_requests import COUNTS


def shown(topics):
    return [(topic.name, topic.partitions) for topic in topics]


async def test_a_group_is_described_with_its_topology_members_and_tasks(streams):
    await streams.beat()
    await streams.beat("m", 2)
    group = await streams.describe()
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == ("Stable", 3, 3, "sticky")
    words, counting = group.topology.subtopologies
    assert (words.source_topics, words.repartition_sink_topics) == (["t"], ["words"])
    assert shown(counting.repartition_source_topics) == [("words", 3)]
    # The changelog has the number of partitions that was decided for it.
    assert shown(counting.state_changelog_topics) == [("counts", 3)]
    (member,) = group.members
    assert (member.process_id, member.assignment, member.target_assignment) == ("p", member.target_assignment, member.assignment)
    assert {each.subtopology_id: each.partitions for each in member.assignment.active_tasks} == {"0": [0, 1], "1": [0, 1, 2]}
    listed = (await ask(streams, ApiKey.LIST_GROUPS, types_filter=["streams"])).groups
    assert [(each.group_id, each.group_type, each.group_state) for each in listed] == [("g", "streams", "Stable")]


async def test_a_group_without_its_topics_has_the_topology_as_the_member_gave_it(streams):
    await streams.ask(ApiKey.DELETE_TOPICS, DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]))
    await streams.beat()
    group = await streams.describe()
    assert group.group_state == "NotReady"
    _, counting = group.topology.subtopologies
    (changelog,) = counting.state_changelog_topics
    assert (shown([changelog]), changelog.topic_configs) == ([("counts", 0)], COUNTS.topic_configs)
    (member,) = group.members
    assert (member.assignment.active_tasks, member.target_assignment.active_tasks) == ([], [])


async def test_a_request_says_what_else_it_wants_to_know(streams):
    await streams.beat()
    for asked, operations, status in ((False, NO_OPERATIONS, 0), (True, GROUP_OPERATIONS, 1)):
        group = await streams.describe(include_authorized_operations=asked, include_topology_description=asked)
        assert (group.authorized_operations, group.topology_description_status) == (operations, status)
        assert group.topology_description is None
    (older,) = (await ask(streams, ApiKey.STREAMS_GROUP_DESCRIBE, 0, group_ids=["g"])).groups
    assert older == await streams.describe()


async def test_a_missing_group_and_one_of_another_type_are_not_found(streams):
    await streams.beat()
    await beat(streams, group_id="consumers")
    groups = (await ask(streams, ApiKey.STREAMS_GROUP_DESCRIBE, group_ids=["none", "consumers", "", "g"])).groups
    assert [(each.group_id, each.error_code, each.error_message) for each in groups] == [
        ("none", ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
        ("consumers", ErrorCode.GROUP_ID_NOT_FOUND, "Group consumers is not a streams group."),
        ("", ErrorCode.INVALID_GROUP_ID, None),
        ("g", ErrorCode.NONE, None),
    ]
    (consumer,) = (await ask(streams, ApiKey.CONSUMER_GROUP_DESCRIBE, group_ids=["g"])).groups
    assert (consumer.error_code, consumer.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "not a consumer group: g")
