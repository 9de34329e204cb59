"""What a script makes before its cases: a topic with records, a group with a commit, a member, a producer."""

from itertools import chain
from typing import Any
from uuid import UUID

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.texts import uuid_text
from tests.campaigns.wire_differential.script import Batch, Ref, Step

TOPIC = "@t"
# Made once in a script: Kafka's coordinator of groups is told of a topic later than its broker.
CONSUMED = "@consumed"
GROUP = "@g"
SIMPLE_GROUP = "@offsets"
TRANSACTIONAL_ID = "@x"
# A ConsumerProtocol subscription of version 0 to no topic, and an assignment of nothing.
SUBSCRIPTION = bytes.fromhex("0000 00000000 ffffffff")
ASSIGNMENT = bytes.fromhex("0000 00000000 ffffffff")
_OK = (0,)


def topic(name: str = TOPIC, partitions: int = 2, bind: str = "tid") -> tuple[Step, ...]:
    """A topic that is ready."""
    asked = {"topics": [{"name": name, "num_partitions": partitions, "replication_factor": 1}], "timeout_ms": 10_000}
    return (
        Step("", ApiKey.CREATE_TOPICS, 5, asked),
        Step(
            "",
            ApiKey.METADATA,
            12,
            {"topics": [{"name": name}], "allow_auto_topic_creation": False},
            bind={bind: "topics.topic_id"},
            until=("topics.partitions.error_code", _OK),
        ),
    )


def records(name: str = TOPIC, count: int = 3) -> tuple[Step, ...]:
    """Records in partition 0."""
    data = [{"name": name, "partition_data": [{"index": 0, "records": Batch(count)}]}]
    asked = {"acks": -1, "timeout_ms": 5_000, "topic_data": data}
    return (Step("", ApiKey.PRODUCE, 9, asked, until=("responses.partition_responses.error_code", _OK)),)


def offsets(group: str = SIMPLE_GROUP) -> tuple[Step, ...]:
    """A group without members, with an offset for partition 0."""
    committed = [{"partition_index": 0, "committed_offset": 2, "committed_metadata": "m", "committed_leader_epoch": -1}]
    asked = {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": TOPIC, "partitions": committed}],
    }
    return (Step("", ApiKey.OFFSET_COMMIT, 8, asked, until=("topics.partitions.error_code", _OK)),)


def member(group: str = GROUP) -> tuple[Step, ...]:
    """A stable group of one member: ``member`` and ``generation`` are bound."""
    joined = {
        "group_id": group,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
    }
    synced = {
        "group_id": group,
        "generation_id": Ref("generation", 1),
        "member_id": Ref("member", ""),
        "assignments": [{"member_id": Ref("member", ""), "assignment": ASSIGNMENT}],
    }
    return (
        Step("", ApiKey.JOIN_GROUP, 3, joined, bind={"member": "member_id", "generation": "generation_id"}),
        Step("", ApiKey.SYNC_GROUP, 3, synced, until=("error_code", _OK)),
    )


def consumer(group: str = GROUP) -> tuple[Step, ...]:
    """A stable consumer group of one member, which has both partitions: ``member`` and ``generation``, its epoch, are bound."""
    joined = {
        "group_id": group,
        "member_id": "m1",
        "member_epoch": 0,
        "rebalance_timeout_ms": 30_000,
        "subscribed_topic_names": [CONSUMED],
        "topic_partitions": [],
    }
    bind = {"member": "member_id", "generation": "member_epoch"}
    path = "assignment.topic_partitions.partitions"
    return (
        *topic(CONSUMED),
        Step("", ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, joined, bind=bind, until=(path, (0, 1))),
    )


def share_group(group: str = GROUP) -> tuple[Step, ...]:
    """A share group of one member, which has both partitions: ``member`` and ``generation``, its epoch, are bound."""
    joined = {"group_id": group, "member_id": "m1", "member_epoch": 0, "subscribed_topic_names": [CONSUMED]}
    stays = {**joined, "member_id": Ref("member", ""), "member_epoch": Ref("generation", 1)}
    bind = {"member": "member_id", "generation": "member_epoch"}
    path = "assignment.topic_partitions.partitions"
    return (
        *topic(CONSUMED),
        Step("", ApiKey.SHARE_GROUP_HEARTBEAT, 1, joined, bind=bind),
        Step("", ApiKey.SHARE_GROUP_HEARTBEAT, 1, stays, bind=bind, until=(path, (0, 1))),
    )


def streams_tasks(partitions: list[int]) -> dict[str, Any]:
    """The tasks that a member of a streams group owns."""
    active = [{"subtopology_id": "0", "partitions": partitions}] if partitions else []
    return {"active_tasks": active, "standby_tasks": [], "warmup_tasks": []}


def streams_group(group: str = GROUP) -> tuple[Step, ...]:
    """A streams group of one member, which has both tasks: ``member`` and ``generation``, its epoch, are bound."""
    joined = {
        "group_id": group,
        "member_id": "m1",
        "member_epoch": 0,
        "rebalance_timeout_ms": 30_000,
        "process_id": "p",
        "topology": {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": [CONSUMED]}]},
        **streams_tasks([]),
    }
    bind = {"member": "member_id", "generation": "member_epoch"}
    return (
        *topic(CONSUMED),
        Step("", ApiKey.STREAMS_GROUP_HEARTBEAT, 1, joined, bind=bind, until=("active_tasks.partitions", (0, 1))),
    )


def share_offsets(group: str = GROUP) -> tuple[Step, ...]:
    """A share group without members, with a start offset for partition 0."""
    topics = [{"topic_name": TOPIC, "partitions": [{"partition_index": 0, "start_offset": 1}]}]
    asked = {"group_id": group, "topics": topics}
    return (Step("", ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, asked, until=("responses.partitions.error_code", _OK)),)


def producer(transactional_id: str = TRANSACTIONAL_ID) -> tuple[Step, ...]:
    """A transactional producer: ``pid`` and ``epoch`` are bound."""
    asked = {"transactional_id": transactional_id, "transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1}
    bind = {"pid": "producer_id", "epoch": "producer_epoch"}
    return (Step("", ApiKey.INIT_PRODUCER_ID, 4, asked, bind=bind, until=("error_code", _OK)),)


def ongoing() -> tuple[Step, ...]:
    """A transaction with partition 1 of the topic in it, and no record."""
    asked = {
        "v3_and_below_transactional_id": TRANSACTIONAL_ID,
        "v3_and_below_producer_id": Ref("pid", 0),
        "v3_and_below_producer_epoch": Ref("epoch", 0),
        "v3_and_below_topics": [{"name": TOPIC, "partitions": [1]}],
    }
    path = "results_by_topic_v3_and_below.results_by_partition.partition_error_code"
    return (Step("", ApiKey.ADD_PARTITIONS_TO_TXN, 3, asked, until=(path, _OK)),)


def share_coordinator() -> Step:
    """The topic of the share coordinator: FindCoordinator creates it."""
    asked = {"key_type": 2, "coordinator_keys": [f"{GROUP}:{uuid_text(UUID(int=1 << 127))}:0"]}
    return Step("", ApiKey.FIND_COORDINATOR, 6, asked, until=("coordinators.error_code", _OK))


def share_state(group: str = GROUP) -> tuple[Step, ...]:
    """The state of a share partition: partition 0 of the topic, read by the group."""
    initialized = {"partition": 0, "state_epoch": 0, "start_offset": 0}
    asked = {"group_id": group, "topics": [{"topic_id": Ref("tid"), "partitions": [initialized]}]}
    return (Step("", ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, asked, until=("results.partitions.error_code", _OK)),)


def always_there() -> tuple[Step, ...]:
    """The requests to every broker before the first script: the coordinators' topics, loaded."""
    return (
        *topic(),
        *(
            Step("", ApiKey.FIND_COORDINATOR, 3, {"key": f"@{kind}", "key_type": kind}, until=("error_code", _OK))
            for kind in (0, 1)
        ),
        share_coordinator(),
        # Each partition of the topic has a state, so that none has the size 0.
        *chain.from_iterable(share_state(f"@g{each}") for each in range(40)),
        *(
            Step(
                "",
                ApiKey.INIT_PRODUCER_ID,
                4,
                {"transactional_id": f"@x{each}", "transaction_timeout_ms": 1000, "producer_id": -1, "producer_epoch": -1},
                until=("error_code", _OK),
            )
            for each in range(40)
        ),
        *(
            Step(
                "",
                ApiKey.OFFSET_FETCH,
                7,
                {"group_id": f"@g{each}", "topics": [{"name": TOPIC, "partition_indexes": [0]}]},
                until=("error_code", _OK),
            )
            for each in range(40)
        ),
    )


def quota_of_a_user() -> dict[str, object]:
    """An entry of AlterClientQuotas: two quotas of a user."""
    ops = [{"key": "producer_byte_rate", "value": 1_000.0}, {"key": "request_percentage", "value": 12.5}]
    return {"entity": [{"entity_type": "user", "entity_name": "@user"}], "ops": ops}


def quotas() -> tuple[Step, ...]:
    """The same, set."""
    return (Step("", ApiKey.ALTER_CLIENT_QUOTAS, 1, {"entries": [quota_of_a_user()]}),)
