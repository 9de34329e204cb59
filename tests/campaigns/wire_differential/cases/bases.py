"""For each API a request that is answered with more than an error, for all versions at once, and what must be there before it."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.texts import uuid_text
from tests.campaigns.wire_differential.cases import setup, telemetry
from tests.campaigns.wire_differential.cases.setup import CONSUMED, GROUP, SIMPLE_GROUP, SUBSCRIPTION, TOPIC, TRANSACTIONAL_ID
from tests.campaigns.wire_differential.script import Batch, Ref, Step

_TID = Ref("tid")
_PRODUCER = {"transactional_id": TRANSACTIONAL_ID, "producer_id": Ref("pid", 0), "producer_epoch": Ref("epoch", 0)}
_OFFSET = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "m", "committed_leader_epoch": -1}
_COMMITTED = [{"name": TOPIC, "topic_id": _TID, "partitions": [_OFFSET]}]
_TOPIC_CONFIG = [{"name": "retention.ms", "value": "1000000", "config_operation": 0}]
_MEMBER = {"group_id": GROUP, "member_id": Ref("member", ""), "generation_id": Ref("generation", 1)}
_ACL = {
    "resource_type": 2,
    "resource_name": TOPIC,
    "resource_pattern_type": 3,
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
_ACLS = {
    "resource_type_filter": 2,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
# A voter that is none. The brokers of these scripts have configured voters (kraft.version 0).
_VOTER = {"cluster_id": None, "voter_id": 9, "voter_directory_id": UUID(int=(1 << 127) + 9)}
_FETCHED = {
    "partition": 0,
    "current_leader_epoch": -1,
    "fetch_offset": 0,
    "last_fetched_epoch": -1,
    "log_start_offset": -1,
    "partition_max_bytes": 1 << 20,
}


@dataclass(frozen=True, slots=True)
class Base:
    """``each_time``: the request uses up what ``before`` has made, so it is made for every case."""

    fields: dict[str, Any]
    before: tuple[Step, ...] = ()
    each_time: bool = False


_TOPIC = setup.topic()
_RECORDS = (*_TOPIC, *setup.records())
_OFFSETS = (*_RECORDS, *setup.offsets())
_STABLE = (*_TOPIC, *setup.member())
_PRODUCING = (*_TOPIC, *setup.producer())
_ONGOING = (*_PRODUCING, *setup.ongoing())
_SHARE_OFFSETS = (*_RECORDS, *setup.share_offsets())
_SHARE_MEMBER = {"group_id": GROUP, "member_id": uuid_text(UUID(int=(1 << 127) + 1)), "share_session_epoch": 0}
_SHARED = [{"topic_id": _TID, "partitions": [{"partition_index": 0}]}]


def _share_state(fields: dict[str, Any], *, each_time: bool = False) -> Base:
    """A request for the state of one share partition."""
    topics = [{"topic_id": _TID, "partitions": [{"partition": 0, **fields}]}]
    return Base({"group_id": GROUP, "topics": topics}, (*_TOPIC, *setup.share_state()), each_time)


BASES: dict[ApiKey, Base] = {
    ApiKey.PRODUCE: Base(
        {
            "transactional_id": None,
            "acks": -1,
            "timeout_ms": 5_000,
            "topic_data": [{"name": TOPIC, "topic_id": _TID, "partition_data": [{"index": 0, "records": Batch(2)}]}],
        },
        _TOPIC,
    ),
    ApiKey.FETCH: Base(
        {
            "replica_id": -1,
            "max_wait_ms": 100,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [{"topic": TOPIC, "topic_id": _TID, "partitions": [_FETCHED]}],
            "forgotten_topics_data": [],
        },
        _RECORDS,
    ),
    ApiKey.LIST_OFFSETS: Base(
        {
            "replica_id": -1,
            "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}]}],
        },
        _RECORDS,
    ),
    ApiKey.METADATA: Base({"topics": [{"name": TOPIC}], "allow_auto_topic_creation": False}, _TOPIC),
    ApiKey.OFFSET_COMMIT: Base(
        {
            "group_id": SIMPLE_GROUP,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "retention_time_ms": -1,
            "topics": _COMMITTED,
        },
        _OFFSETS,
    ),
    ApiKey.OFFSET_FETCH: Base(
        {
            "group_id": SIMPLE_GROUP,
            "topics": [{"name": TOPIC, "partition_indexes": [0, 1]}],
            "groups": [
                {
                    "group_id": SIMPLE_GROUP,
                    "member_id": None,
                    "member_epoch": -1,
                    "topics": [{"name": TOPIC, "topic_id": _TID, "partition_indexes": [0, 1]}],
                }
            ],
        },
        _OFFSETS,
    ),
    ApiKey.FIND_COORDINATOR: Base({"key": GROUP, "key_type": 0, "coordinator_keys": [GROUP]}),
    ApiKey.JOIN_GROUP: Base(
        {
            "group_id": GROUP,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 30_000,
            "member_id": Ref("member", ""),
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
        },
        setup.member(),
        each_time=True,
    ),
    ApiKey.HEARTBEAT: Base(_MEMBER, setup.member()),
    ApiKey.LEAVE_GROUP: Base(
        {"group_id": GROUP, "member_id": Ref("member", ""), "members": [{"member_id": Ref("member", "")}]},
        setup.member(),
        each_time=True,
    ),
    ApiKey.SYNC_GROUP: Base(
        {**_MEMBER, "protocol_type": "consumer", "protocol_name": "range", "assignments": []}, setup.member()
    ),
    ApiKey.DESCRIBE_GROUPS: Base({"groups": [GROUP, SIMPLE_GROUP]}, (*_STABLE, *setup.records(), *setup.offsets())),
    ApiKey.LIST_GROUPS: Base({}, _STABLE),
    ApiKey.API_VERSIONS: Base(
        {"client_software_name": "wire", "client_software_version": "1.0", "cluster_id": Ref("cluster"), "node_id": 1},
        (Step("", ApiKey.METADATA, 9, {"topics": []}, bind={"cluster": "cluster_id"}),),
    ),
    ApiKey.CREATE_TOPICS: Base(
        {
            "topics": [{"name": "@new", "num_partitions": 1, "replication_factor": 1, "configs": [], "assignments": []}],
            "timeout_ms": 10_000,
            "validate_only": True,
        }
    ),
    ApiKey.DELETE_TOPICS: Base(
        {"topic_names": [TOPIC], "topics": [{"name": TOPIC, "topic_id": None}], "timeout_ms": 10_000}, _TOPIC, each_time=True
    ),
    ApiKey.DELETE_RECORDS: Base(
        {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 1}]}], "timeout_ms": 10_000}, _RECORDS
    ),
    ApiKey.INIT_PRODUCER_ID: Base(
        {"transactional_id": TRANSACTIONAL_ID, "transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1},
        setup.producer(),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Base(
        {
            "replica_id": -1,
            "topics": [{"topic": TOPIC, "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]}],
        },
        _RECORDS,
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: Base(
        {
            **{f"v3_and_below_{name}": value for name, value in _PRODUCER.items()},
            "v3_and_below_topics": [{"name": TOPIC, "partitions": [0]}],
            "transactions": [{**_PRODUCER, "verify_only": False, "topics": [{"name": TOPIC, "partitions": [0]}]}],
        },
        _PRODUCING,
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: Base({**_PRODUCER, "group_id": SIMPLE_GROUP}, setup.producer()),
    ApiKey.END_TXN: Base({**_PRODUCER, "committed": True}, _ONGOING, each_time=True),
    ApiKey.WRITE_TXN_MARKERS: Base(
        {
            "markers": [
                {
                    "producer_id": Ref("pid", 0),
                    "producer_epoch": Ref("epoch", 0),
                    "transaction_result": True,
                    "topics": [{"name": TOPIC, "partition_indexes": [0]}],
                    "coordinator_epoch": 0,
                    "transaction_version": 1,
                }
            ]
        },
        _PRODUCING,
    ),
    ApiKey.TXN_OFFSET_COMMIT: Base(
        {
            **_PRODUCER,
            "group_id": SIMPLE_GROUP,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "topics": _COMMITTED,
        },
        (
            *_PRODUCING,
            Step("", ApiKey.ADD_OFFSETS_TO_TXN, 3, {**_PRODUCER, "group_id": SIMPLE_GROUP}, until=("error_code", (0,))),
        ),
    ),
    ApiKey.DESCRIBE_ACLS: Base(_ACLS),
    ApiKey.CREATE_ACLS: Base({"creations": [_ACL]}),
    ApiKey.DELETE_ACLS: Base({"filters": [_ACLS]}),
    ApiKey.DESCRIBE_CONFIGS: Base(
        {"resources": [{"resource_type": 2, "resource_name": TOPIC, "configuration_keys": ["retention.ms", "cleanup.policy"]}]},
        _TOPIC,
    ),
    ApiKey.ALTER_CONFIGS: Base(
        {"resources": [{"resource_type": 2, "resource_name": TOPIC, "configs": _TOPIC_CONFIG}], "validate_only": False}, _TOPIC
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Base({"dirs": [{"path": "/nowhere", "topics": [{"name": TOPIC, "partitions": [0]}]}]}, _TOPIC),
    ApiKey.DESCRIBE_LOG_DIRS: Base({"topics": [{"topic": TOPIC, "partitions": [0, 1]}]}, _RECORDS),
    ApiKey.CREATE_PARTITIONS: Base(
        {"topics": [{"name": TOPIC, "count": 3, "assignments": None}], "timeout_ms": 10_000, "validate_only": True}, _TOPIC
    ),
    ApiKey.DELETE_GROUPS: Base({"groups_names": [SIMPLE_GROUP]}, _OFFSETS, each_time=True),
    ApiKey.ELECT_LEADERS: Base(
        {"election_type": 0, "topic_partitions": [{"topic": TOPIC, "partitions": [0]}], "timeout_ms": 10_000}, _TOPIC
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Base(
        {"resources": [{"resource_type": 2, "resource_name": TOPIC, "configs": _TOPIC_CONFIG}], "validate_only": False}, _TOPIC
    ),
    ApiKey.OFFSET_DELETE: Base(
        {"group_id": SIMPLE_GROUP, "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]}, _OFFSETS
    ),
    ApiKey.SASL_HANDSHAKE: Base({"mechanism": "PLAIN"}),
    ApiKey.SASL_AUTHENTICATE: Base({"auth_bytes": b"token"}),
    # The brokers of these scripts have no listener by which a token may be asked for.
    ApiKey.CREATE_DELEGATION_TOKEN: Base(
        {
            "owner_principal_type": "User",
            "owner_principal_name": "a",
            "renewers": [{"principal_type": "User", "principal_name": "b"}],
            "max_lifetime_ms": 1_000,
        }
    ),
    ApiKey.RENEW_DELEGATION_TOKEN: Base({"hmac": b"hmac", "renew_period_ms": 1_000}),
    ApiKey.EXPIRE_DELEGATION_TOKEN: Base({"hmac": b"hmac", "expiry_time_period_ms": 1_000}),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Base({"owners": [{"principal_type": "User", "principal_name": "a"}]}),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Base(
        {"components": [{"entity_type": "user", "match_type": 0, "match": "@user"}], "strict": False}, setup.quotas()
    ),
    # Nothing is left behind that another script's requests would describe.
    ApiKey.ALTER_CLIENT_QUOTAS: Base({"entries": [setup.quota_of_a_user()], "validate_only": True}),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Base({"users": [{"name": "@user"}]}),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Base(
        {
            "deletions": [{"name": "@nobody", "mechanism": 1}],
            "upsertions": [{"name": "@user", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"salted"}],
        }
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Base(
        {"timeout_ms": 10_000, "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "replicas": [1]}]}]}, _TOPIC
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Base(
        {"timeout_ms": 10_000, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}, _TOPIC
    ),
    ApiKey.DESCRIBE_QUORUM: Base({"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}),
    ApiKey.UPDATE_FEATURES: Base(
        {
            "timeout_ms": 10_000,
            "feature_updates": [{"feature": "nothing", "max_version_level": 1, "allow_downgrade": False, "upgrade_type": 1}],
            "validate_only": True,
        }
    ),
    ApiKey.DESCRIBE_CLUSTER: Base({"include_cluster_authorized_operations": True, "endpoint_type": 1}),
    ApiKey.DESCRIBE_PRODUCERS: Base({"topics": [{"name": TOPIC, "partition_indexes": [0]}]}, _RECORDS),
    # None that there is: a broker that unregisters itself is one no more.
    ApiKey.UNREGISTER_BROKER: Base({"broker_id": 9}),
    ApiKey.UNREGISTER_CONTROLLER: Base({"controller_id": 9}),
    ApiKey.DESCRIBE_TRANSACTIONS: Base({"transactional_ids": [TRANSACTIONAL_ID]}, _ONGOING),
    ApiKey.LIST_TRANSACTIONS: Base({"duration_filter": -1}, _ONGOING),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Base(
        {
            "group_id": GROUP,
            "member_id": Ref("member", ""),
            "member_epoch": Ref("generation", 1),
            "rebalance_timeout_ms": 30_000,
            "subscribed_topic_names": [CONSUMED],
            "topic_partitions": [{"topic_id": _TID, "partitions": [0, 1]}],
        },
        setup.consumer(),
        each_time=True,
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Base({"group_ids": [GROUP], "include_authorized_operations": True}, setup.consumer()),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: Base({"client_instance_id": telemetry.own_id(1)}),
    ApiKey.PUSH_TELEMETRY: Base(telemetry.push("", 1).fields, (telemetry.get("", 1),)),
    ApiKey.LIST_CONFIG_RESOURCES: Base({"resource_types": [2]}, _TOPIC),
    ApiKey.ADD_RAFT_VOTER: Base(
        {**_VOTER, "timeout_ms": 10_000, "listeners": [{"name": "CONTROLLER", "host": "localhost", "port": 9093}]}
    ),
    ApiKey.REMOVE_RAFT_VOTER: Base(_VOTER),
    ApiKey.SHARE_GROUP_HEARTBEAT: Base(
        {
            "group_id": GROUP,
            "member_id": Ref("member", ""),
            "member_epoch": Ref("generation", 1),
            "subscribed_topic_names": [CONSUMED],
        },
        setup.share_group(),
        each_time=True,
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: Base({"group_ids": [GROUP], "include_authorized_operations": True}, setup.share_group()),
    ApiKey.STREAMS_GROUP_HEARTBEAT: Base(
        {
            "group_id": GROUP,
            "member_id": Ref("member", ""),
            "member_epoch": Ref("generation", 1),
            "process_id": "p",
            **setup.streams_tasks([0, 1]),
            "task_offsets": [{"subtopology_id": "0", "partition": 0, "offset": 5}],
            "client_tags": [{"key": "zone", "value": "a"}],
        },
        setup.streams_group(),
        each_time=True,
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: Base(
        {"group_ids": [GROUP], "include_authorized_operations": True, "include_topology_description": True},
        setup.streams_group(),
    ),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: Base(
        {"group_id": GROUP, "member_id": Ref("member", ""), "topology_epoch": 0}, setup.streams_group()
    ),
    ApiKey.SHARE_FETCH: Base(
        # Long enough for Kafka to read the share partition's state.
        {
            **_SHARE_MEMBER,
            "max_wait_ms": 300,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 2,
            "batch_size": 2,
            "topics": _SHARED,
        },
        _SHARE_OFFSETS,
    ),
    ApiKey.SHARE_ACKNOWLEDGE: Base({**_SHARE_MEMBER, "topics": _SHARED}, _SHARE_OFFSETS),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Base(
        {"groups": [{"group_id": GROUP, "topics": [{"topic_name": TOPIC, "partitions": [0]}]}]}, _SHARE_OFFSETS
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Base(
        {"group_id": GROUP, "topics": [{"topic_name": TOPIC, "partitions": [{"partition_index": 0, "start_offset": 2}]}]},
        _SHARE_OFFSETS,
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Base(
        {"group_id": GROUP, "topics": [{"topic_name": TOPIC}]}, _SHARE_OFFSETS, each_time=True
    ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _share_state({"state_epoch": 0, "start_offset": 0}),
    ApiKey.READ_SHARE_GROUP_STATE: _share_state({"leader_epoch": 0}),
    ApiKey.WRITE_SHARE_GROUP_STATE: _share_state(
        {
            "state_epoch": 0,
            "leader_epoch": 0,
            "start_offset": 0,
            "delivery_complete_count": 2,
            "state_batches": [{"first_offset": 0, "last_offset": 1, "delivery_state": 2, "delivery_count": 1}],
        },
    ),
    ApiKey.DELETE_SHARE_GROUP_STATE: _share_state({}, each_time=True),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _share_state({"leader_epoch": 0}),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Base({"topics": [{"name": TOPIC}], "response_partition_limit": 10}, _TOPIC),
}
