"""Groups and transactions: what a client may not know is left out or refused; an expression matches what it may see."""

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.message_types.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.message_types.delete_groups import DeleteGroupsRequest
from odradek.protocol.message_types.describe_groups import DescribeGroupsRequest
from odradek.protocol.message_types.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.message_types.list_groups import ListGroupsRequest
from odradek.protocol.message_types.list_transactions import ListTransactionsRequest
from odradek.protocol.message_types.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.message_types.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from odradek.testing import SocketlessBroker
from odradek.timing.clock import VirtualClock
from tests.broker.api.acl_requests import create
from tests.broker.api.in_process import CONFIGS, Node
from tests.broker.security.acl.bed import ALICE

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
SECURITY = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}


class Clients(Node):
    """The tests' own client is a super user. ``alice`` asks as another."""

    async def alice(self, api_key, request, version=None, **options):
        return await self.ask(
            api_key, request, SERVED[api_key].max_version if version is None else version, principal=ALICE, **options
        )

    def allow(self, *texts):
        assert all(not code for code, _ in create(self.core, *(f"allow {ALICE} {text}" for text in texts)))


def clients():
    return SocketlessBroker(configs=CONFIGS | SECURITY, clock=VirtualClock(), seed=1)


def commit(*names):
    partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
    return OffsetCommitRequest(
        group_id="g", topics=[OffsetCommitRequestTopic(name=name, partitions=partitions) for name in names]
    )


async def committed(node, names):
    topics = None if names is None else [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in names]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    (group,) = (await node.alice(ApiKey.OFFSET_FETCH, request, 9)).groups
    found = {topic.name: (topic.partitions[0].committed_offset, topic.partitions[0].error_code) for topic in group.topics}
    return group.error_code, found


async def test_offsets_of_topics_that_the_client_may_use_are_committed_and_told():
    async with clients() as broker:
        node = Clients(broker)
        for name in ("mine", "theirs"):
            await node.create(name)
        node.allow("READ GROUP g", "READ TOPIC mine", "READ TOPIC absent")
        answer = await node.alice(ApiKey.OFFSET_COMMIT, commit("mine", "theirs", "none", "absent"), 9)
        assert {topic.name: topic.partitions[0].error_code for topic in answer.topics} == {
            "mine": ErrorCode.NONE,
            "theirs": REFUSED,
            "none": REFUSED,
            "absent": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        await node.ask(ApiKey.OFFSET_COMMIT, commit("theirs"), 9)
        assert await committed(node, ("mine", "theirs")) == (0, {"mine": (7, 0), "theirs": (-1, REFUSED)})
        assert await committed(node, None) == (0, {"mine": (7, 0)})
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None) for group in ("g", "other")])
        told = await node.alice(ApiKey.OFFSET_FETCH, request, 9)
        assert [(group.group_id, group.error_code) for group in told.groups] == [("g", 0), ("other", NO_GROUP)]
        # Some of the topics of one of several groups.
        topics = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in ("mine", "theirs")]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics) for group in ("g", "other")])
        told = await node.alice(ApiKey.OFFSET_FETCH, request, 9)
        assert [(group.group_id, len(group.topics)) for group in told.groups] == [("g", 2), ("other", 0)]


async def test_groups_that_the_client_may_not_describe_are_left_out_or_refused():
    async with clients() as broker:
        node = Clients(broker)
        await node.create("t")
        for group in ("ga", "gb"):
            await node.ask(ApiKey.OFFSET_COMMIT, commit("t")._replace(group_id=group), 9)
        node.allow("DESCRIBE GROUP ga")

        async def listed():
            return sorted(group.group_id for group in (await node.alice(ApiKey.LIST_GROUPS, ListGroupsRequest())).groups)

        assert await listed() == ["ga"]
        described = await node.alice(
            ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["gb", "ga"], include_authorized_operations=True)
        )
        told = {group.group_id: (group.error_code, group.authorized_operations) for group in described.groups}
        assert told == {"ga": (0, 1 << 8), "gb": (NO_GROUP, -(2**31))}
        node.allow("DELETE GROUP ga")
        deleted = await node.alice(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=["ga", "gb", "gb"]))
        assert {group.group_id: group.error_code for group in deleted.results} == {"ga": 0, "gb": NO_GROUP}
        node.allow("DESCRIBE CLUSTER kafka-cluster")
        assert await listed() == ["gb"]


def heartbeat(**fields):
    defaults = {"group_id": "g", "member_id": "m", "rebalance_timeout_ms": 10_000, "topic_partitions": []}
    return ConsumerGroupHeartbeatRequest(**defaults | fields)


async def test_a_regular_expression_matches_what_its_client_may_see():
    async with clients() as broker:
        node = Clients(broker)
        ids = {name: await node.create(name) for name in ("ta", "tb")}
        node.allow("READ GROUP g", "DESCRIBE TOPIC ta")
        await node.alice(ApiKey.CONSUMER_GROUP_HEARTBEAT, heartbeat(subscribed_topic_regex="t.*"))
        await broker.advance(1_000)
        answer = await node.alice(ApiKey.CONSUMER_GROUP_HEARTBEAT, heartbeat(member_epoch=1, subscribed_topic_regex="t.*"))
        assert [each.topic_id for each in answer.assignment.topic_partitions] == [ids["ta"]]


async def test_a_group_with_a_topic_that_the_client_may_not_know_is_not_described():
    async with clients() as broker:
        node = Clients(broker)
        for name in ("mine", "theirs"):
            await node.create(name)
        await node.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, heartbeat(subscribed_topic_names=["mine", "theirs"]))
        node.allow("DESCRIBE GROUP g", "DESCRIBE TOPIC mine")
        asked = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=True)

        async def described():
            (group,) = (await node.alice(ApiKey.CONSUMER_GROUP_DESCRIBE, asked)).groups
            return group

        hidden = await described()
        assert (hidden.error_code, hidden.members, hidden.authorized_operations) == (REFUSED, (), -(2**31))
        node.allow("DESCRIBE TOPIC theirs")
        seen = await described()
        assert (seen.error_code, len(seen.members), seen.authorized_operations) == (0, 1, 1 << 8)


async def test_transactions_are_told_to_who_may_describe_them():
    async with clients() as broker:
        node = Clients(broker)
        for transactional_id in ("xa", "xb"):
            await node.producer(transactional_id)
        node.allow("DESCRIBE TRANSACTIONAL_ID xa")
        listed = await node.alice(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest())
        assert [each.transactional_id for each in listed.transaction_states] == ["xa"]
        asked = DescribeTransactionsRequest(transactional_ids=["xb", "xa"])
        described = await node.alice(ApiKey.DESCRIBE_TRANSACTIONS, asked)
        told = {each.transactional_id: each.error_code for each in described.transaction_states}
        assert told == {"xa": 0, "xb": ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}
