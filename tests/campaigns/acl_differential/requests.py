"""What clients ask whole brokers: every API, of topics, groups and transactional ids that are there or not.

A request changes nothing, but for what both brokers change alike: records, offsets, groups, producers' epochs.
"""

from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple
from uuid import UUID

from odradek.broker.api import SERVED
from odradek.common.acls import AclOperation, AclPermission, AclResourceType, PatternType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.create_acls import AclCreation
from odradek.protocol.texts import uuid_text
from tests.campaigns.acl_differential.makers import (
    BOGUS,
    GROUPS,
    NAMES,
    OWNERS,
    PRINCIPALS,
    TOPICS,
    TRANSACTIONAL_IDS,
    K,
    Make,
    add_partitions,
    by_names,
    configs,
    create_token,
    delete_topics,
    fetch,
    find_coordinator,
    metadata,
    of_one,
    offset_commit,
    offset_fetch,
    one,
    plain,
    produce,
    shared,
    some,
    strings,
    txn_offset_commit,
)


class Asked(NamedTuple):
    """A client's request."""

    principal: str
    api_key: ApiKey
    version: int
    make: Make


def acls(random: Random) -> list[AclCreation]:
    """A seed's access control lists."""
    denies = random.choice((0.0, 0.0, 0.2, 0.5))
    return list(dict.fromkeys(_acl(random, denies) for _ in range(random.choice((0, 2, 6, 12, 25)))))


def _acl(random: Random, denies: float) -> AclCreation:
    kind, names = random.choice(
        (
            (AclResourceType.TOPIC, (*NAMES, "t", "new", "*")),
            (AclResourceType.TOPIC, (*TOPICS, "t", "*")),
            (AclResourceType.GROUP, (*GROUPS, "g", "*")),
            (AclResourceType.TRANSACTIONAL_ID, (*TRANSACTIONAL_IDS, "x", "*")),
            (AclResourceType.CLUSTER, ("kafka-cluster",)),
            (AclResourceType.USER, (*(f"User:{name}" for name in OWNERS), "*")),
        )
    )
    is_prefix = kind is not AclResourceType.CLUSTER and random.random() < 0.3
    return AclCreation(
        int(kind),
        random.choice(names),
        int(PatternType.PREFIXED if is_prefix else PatternType.LITERAL),
        random.choice(("User:alice", "User:alice", "User:bob", "User:*")),
        random.choice(("*", "*", "127.0.0.1", "10.0.0.1", "127.0.0.0/8", "10.0.0.0/8")),
        int(random.choice([each for each in AclOperation if each > AclOperation.ANY])),
        int(AclPermission.DENY if random.random() < denies else AclPermission.ALLOW),
    )


def drawn(random: Random, count: int) -> list[Asked]:
    """The requests of a seed."""
    return [_drawn(random) for _ in range(count)]


def _drawn(random: Random) -> Asked:
    api_key = random.choice(list(_MAKERS))
    lowest, highest, maker = _MAKERS[api_key]
    version = random.randint(max(lowest, SERVED[api_key].min_version), min(highest, SERVED[api_key].max_version))
    return Asked(random.choice(PRINCIPALS), api_key, version, maker(api_key, version, random))


_ANY_ACL: Final = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
_GROUP: Final = one(*GROUPS)
_ID: Final = one(*TRANSACTIONAL_IDS)
_SHARE_STATE: Final = plain(group_id="ga", topics=[{"topic_id": uuid_text(UUID(int=1 << 127)), "partitions": [{"partition": 0}]}])

# API: its lowest and highest version here, and what makes its requests.
_MAKERS: Final[dict[ApiKey, tuple[int, int, Callable[[ApiKey, int, Random], Make]]]] = {
    K.PRODUCE: (3, 13, produce),
    K.FETCH: (4, 17, fetch),
    K.LIST_OFFSETS: (1, 9, by_names("topics", "name", replica_id=-1, partitions=[{"timestamp": -1}])),
    K.METADATA: (1, 13, metadata),
    K.OFFSET_COMMIT: (2, 10, offset_commit),
    K.OFFSET_FETCH: (1, 10, offset_fetch),
    K.FIND_COORDINATOR: (0, 6, find_coordinator),
    K.JOIN_GROUP: (5, 9, of_one(group_id=_GROUP, session_timeout_ms=1, protocol_type="consumer")),
    K.HEARTBEAT: (0, 4, of_one(group_id=_GROUP, member_id="m", generation_id=1)),
    K.LEAVE_GROUP: (0, 2, of_one(group_id=_GROUP, members=[{"member_id": "m"}])),
    K.SYNC_GROUP: (
        0,
        5,
        of_one(group_id=_GROUP, member_id="m", generation_id=1, protocol_type=one("consumer", "consumer"), protocol_name="range"),
    ),
    K.DESCRIBE_GROUPS: (0, 6, strings("groups", GROUPS)),
    K.LIST_GROUPS: (0, 5, plain()),
    K.CREATE_TOPICS: (
        2,
        7,
        by_names(
            "topics",
            "name",
            ("new1", "new2", "ta", "not a name"),
            num_partitions=1,
            replication_factor=1,
            timeout_ms=10000,
            validate_only=True,
        ),
    ),
    K.DELETE_TOPICS: (1, 6, delete_topics),
    K.DELETE_RECORDS: (0, 2, by_names("topics", "name", timeout_ms=1000, partitions=[{"offset": 0}])),
    K.INIT_PRODUCER_ID: (
        0,
        5,
        of_one(
            transactional_id=lambda random: random.choice(("xa", "xb", None)),
            transaction_timeout_ms=1000,
            producer_id=-1,
            producer_epoch=-1,
        ),
    ),
    K.OFFSET_FOR_LEADER_EPOCH: (2, 4, by_names("topics", "topic", replica_id=-1, partitions=[{}])),
    K.ADD_PARTITIONS_TO_TXN: (0, 4, add_partitions),
    K.ADD_OFFSETS_TO_TXN: (0, 4, of_one(transactional_id=_ID, group_id=_GROUP, **BOGUS)),
    K.END_TXN: (0, 4, of_one(transactional_id=_ID, **BOGUS)),
    K.WRITE_TXN_MARKERS: (1, 1, plain(markers=[{"producer_id": 7, "topics": [{"name": "absent", "partition_indexes": [0]}]}])),
    K.INITIALIZE_SHARE_GROUP_STATE: (0, 0, _SHARE_STATE),
    K.READ_SHARE_GROUP_STATE: (0, 0, _SHARE_STATE),
    K.WRITE_SHARE_GROUP_STATE: (0, 1, _SHARE_STATE),
    K.DELETE_SHARE_GROUP_STATE: (0, 0, _SHARE_STATE),
    K.READ_SHARE_GROUP_STATE_SUMMARY: (0, 1, _SHARE_STATE),
    K.TXN_OFFSET_COMMIT: (0, 6, txn_offset_commit),
    K.DESCRIBE_ACLS: (1, 3, plain(**_ANY_ACL)),
    K.CREATE_ACLS: (1, 3, plain(creations=[AclCreation(2, "", 3, "User:a", "*", 3, 3)])),
    K.DELETE_ACLS: (1, 3, plain(filters=[{"principal_filter": "User:none", **_ANY_ACL}])),
    K.DESCRIBE_CONFIGS: (1, 4, configs("DescribeConfigsResource")),
    K.ALTER_CONFIGS: (0, 2, configs("AlterConfigsResource", validate_only=True)),
    K.INCREMENTAL_ALTER_CONFIGS: (0, 1, configs("AlterConfigsResource", validate_only=True)),
    K.ALTER_REPLICA_LOG_DIRS: (1, 2, plain(dirs=[{"path": "/none", "topics": [{"name": "ta", "partitions": [0]}]}])),
    K.DESCRIBE_LOG_DIRS: (1, 4, plain(topics=[])),
    K.CREATE_PARTITIONS: (0, 3, by_names("topics", "name", count=3, assignments=None, timeout_ms=10000, validate_only=True)),
    K.DELETE_GROUPS: (0, 3, strings("groups_names", GROUPS)),
    K.ELECT_LEADERS: (0, 2, plain(topic_partitions=[{"topic": "ta", "partitions": [0]}])),
    K.OFFSET_DELETE: (0, 0, by_names("topics", "name", group_id=_GROUP, partitions=[{}])),
    K.ALTER_PARTITION_REASSIGNMENTS: (0, 1, plain(topics=[{"name": "ta", "partitions": [{}]}])),
    K.LIST_PARTITION_REASSIGNMENTS: (0, 0, plain(topics=None)),
    K.DESCRIBE_QUORUM: (0, 2, plain(topics=[{"topic_name": "__cluster_metadata", "partitions": [{}]}])),
    K.UPDATE_FEATURES: (1, 2, plain()),
    K.DESCRIBE_CLIENT_QUOTAS: (0, 1, plain()),
    # One that is removed where none is set.
    K.ALTER_CLIENT_QUOTAS: (
        0,
        1,
        plain(
            entries=[
                {
                    "entity": [{"entity_type": "user", "entity_name": "nobody"}],
                    "ops": [{"key": "producer_byte_rate", "remove": True}],
                }
            ]
        ),
    ),
    K.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0, plain(users=[{"name": "nobody"}])),
    K.ALTER_USER_SCRAM_CREDENTIALS: (0, 0, plain(deletions=[{"name": "nobody", "mechanism": 1}])),
    K.CREATE_DELEGATION_TOKEN: (1, 3, create_token),
    K.DESCRIBE_DELEGATION_TOKEN: (1, 3, plain(owners=None)),
    K.DESCRIBE_CLUSTER: (0, 1, plain(include_cluster_authorized_operations=True)),
    K.DESCRIBE_PRODUCERS: (0, 0, by_names("topics", "name", partition_indexes=[0])),
    K.UNREGISTER_BROKER: (0, 0, plain(broker_id=77)),
    K.UNREGISTER_CONTROLLER: (0, 0, plain(controller_id=77)),
    K.ADD_RAFT_VOTER: (0, 1, plain(voter_id=77)),
    K.REMOVE_RAFT_VOTER: (0, 0, plain(voter_id=77)),
    K.DESCRIBE_TRANSACTIONS: (0, 0, strings("transactional_ids", (*TRANSACTIONAL_IDS, "none"))),
    K.LIST_TRANSACTIONS: (0, 1, plain()),
    K.CONSUMER_GROUP_HEARTBEAT: (
        0,
        1,
        of_one(
            group_id=_GROUP,
            member_id="m",
            member_epoch=3,
            subscribed_topic_names=lambda random: some(random, TOPICS),
            topic_partitions=None,
        ),
    ),
    K.CONSUMER_GROUP_DESCRIBE: (0, 1, strings("group_ids", (*GROUPS, "none"))),
    K.LIST_CONFIG_RESOURCES: (1, 1, plain()),
    K.DESCRIBE_TOPIC_PARTITIONS: (0, 0, by_names("topics", "name")),
    K.SHARE_GROUP_HEARTBEAT: (1, 1, of_one(group_id=_GROUP, member_id="m", member_epoch=5, subscribed_topic_names=["ta"])),
    K.SHARE_FETCH: (1, 2, shared),
    K.SHARE_ACKNOWLEDGE: (1, 2, shared),
    K.SHARE_GROUP_DESCRIBE: (1, 1, strings("group_ids", (*GROUPS, "none"))),
    K.STREAMS_GROUP_HEARTBEAT: (0, 1, of_one(group_id=_GROUP, member_id="m", member_epoch=5)),
    K.STREAMS_GROUP_DESCRIBE: (0, 1, strings("group_ids", (*GROUPS, "none"))),
    K.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: (0, 0, of_one(group_id=_GROUP, member_id="m")),
    K.DESCRIBE_SHARE_GROUP_OFFSETS: (
        0,
        1,
        plain(groups=[{"group_id": each, "topics": [{"topic_name": "ta", "partitions": [0]}]} for each in GROUPS]),
    ),
    K.ALTER_SHARE_GROUP_OFFSETS: (0, 0, by_names("topics", "topic_name", group_id=_GROUP, partitions=[{}])),
    K.DELETE_SHARE_GROUP_OFFSETS: (0, 0, by_names("topics", "topic_name", group_id=_GROUP)),
}
MADE: Final = frozenset(_MAKERS)
