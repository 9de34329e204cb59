"""Slices ``valid`` and ``unknown``: requests that mean something, and the same about what is not there."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.wire_differential.cases.bases import BASES
from tests.campaigns.wire_differential.cases.paths import mapped, versions
from tests.campaigns.wire_differential.cases.setup import GROUP, SIMPLE_GROUP, TOPIC, TRANSACTIONAL_ID
from tests.campaigns.wire_differential.script import Ref, Script, Step
from tests.campaigns.wire_differential.wire import request_fields

_UNKNOWN_NAMES = {TOPIC: "@no-topic", GROUP: "@no-group", SIMPLE_GROUP: "@no-offsets", TRANSACTIONAL_ID: "@no-transactions"}
_UNKNOWN_REFS = {
    "tid": UUID(int=(1 << 127) + 12345),
    "member": "nobody",
    "generation": 9,
    "pid": 1_234_567,
    "epoch": 3,
}
# A member of another name, which takes no partition from the first.
_STATIC = {"instance_id": "i", "subscribed_topic_names": [], "topic_partitions": []}
# Changes of the quorum's voters that name none of this cluster's, or its own.
_VOTERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("of another cluster", {"cluster_id": "other"}),
    ("without an id", {"voter_id": -1}),
    ("without a directory", {"voter_directory_id": None}),
    ("of the leader", {"voter_id": 1}),
)
# What the base of an API does not ask: label and fields that replace the base's.
_MORE: dict[ApiKey, tuple[tuple[str, dict[str, Any]], ...]] = {
    ApiKey.PRODUCE: (("acks 1", {"acks": 1}), ("of nothing", {"topic_data": []})),
    ApiKey.LIST_OFFSETS: tuple(
        (
            f"at {timestamp}",
            {
                "topics": [
                    {"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": 0}]}
                ]
            },
        )
        for timestamp in (-5, -4, -3, -2, 0, 1_700_000_000_001, 1_700_000_000_009)
    ),
    ApiKey.OFFSET_FETCH: (
        ("of all", {"topics": None, "groups": [{"group_id": SIMPLE_GROUP, "topics": None, "member_epoch": -1}]}),
        ("stable", {"require_stable": True}),
    ),
    ApiKey.FIND_COORDINATOR: (("of transactions", {"key_type": 1}), ("of share groups", {"key_type": 2})),
    ApiKey.CREATE_TOPICS: (
        *(
            (f"of {name}", {"topics": [{"name": "@c", "num_partitions": 1, "replication_factor": 1, **more}]})
            for name, more in (
                ("default partitions", {"num_partitions": -1, "replication_factor": -1}),
                (
                    "an assignment",
                    {"num_partitions": -1, "replication_factor": -1, "assignments": [{"partition_index": 0, "broker_ids": [1]}]},
                ),
                (
                    "a gap",
                    {"num_partitions": -1, "replication_factor": -1, "assignments": [{"partition_index": 1, "broker_ids": [1]}]},
                ),
                (
                    "another broker",
                    {"num_partitions": -1, "replication_factor": -1, "assignments": [{"partition_index": 0, "broker_ids": [2]}]},
                ),
                ("both", {"assignments": [{"partition_index": 0, "broker_ids": [1]}]}),
                ("a config", {"configs": [{"name": "retention.ms", "value": "9"}]}),
                ("a null config", {"configs": [{"name": "retention.ms", "value": None}]}),
                ("a wrong config", {"configs": [{"name": "retention.ms", "value": "x"}]}),
                ("an unknown config", {"configs": [{"name": "no.such", "value": "x"}]}),
                ("two replicas", {"replication_factor": 2}),
            )
        ),
        ("for good", {"validate_only": False}),
        ("a second time", {"validate_only": False}),
    ),
    ApiKey.DESCRIBE_CONFIGS: (
        ("all of a topic", {"resources": [{"resource_type": 2, "resource_name": TOPIC, "configuration_keys": None}]}),
        (
            "with synonyms",
            {
                "resources": [{"resource_type": 2, "resource_name": TOPIC, "configuration_keys": ["retention.ms"]}],
                "include_synonyms": True,
            },
        ),
        *(
            (
                f"of {what}",
                {"resources": [{"resource_type": kind, "resource_name": name, "configuration_keys": ["num.partitions"]}]},
            )
            for what, kind, name in (
                ("the broker", 4, "1"),
                ("every broker", 4, ""),
                ("another broker", 4, "2"),
                ("logger", 8, "1"),
            )
        ),
        *(
            (f"of {what}", {"resources": [{"resource_type": kind, "resource_name": GROUP}]})
            for what, kind in (("client metrics", 16), ("a group", 32))
        ),
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: tuple(
        (
            f"{operation} {name}={value}",
            {
                "resources": [
                    {
                        "resource_type": 2,
                        "resource_name": TOPIC,
                        "configs": [{"name": name, "value": value, "config_operation": operation}],
                    }
                ]
            },
        )
        for operation in range(4)
        for name, value in (("cleanup.policy", "compact"), ("cleanup.policy", None), ("retention.ms", "x"), ("no.such", "1"))
    ),
    ApiKey.ELECT_LEADERS: (("unclean", {"election_type": 1}), ("of all", {"topic_partitions": None})),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (("all", {"topics": None}),),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (
        ("cancel", {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "replicas": None}]}]}),
    ),
    ApiKey.CREATE_PARTITIONS: (
        ("for good", {"validate_only": False}),
        ("too few", {"topics": [{"name": TOPIC, "count": 1, "assignments": None}]}),
        ("with assignments", {"topics": [{"name": TOPIC, "count": 4, "assignments": [{"broker_ids": [1]}]}]}),
        ("with wrong assignments", {"topics": [{"name": TOPIC, "count": 4, "assignments": [{"broker_ids": [3]}]}]}),
        (
            "with two for one",
            {"topics": [{"name": TOPIC, "count": 4, "assignments": [{"broker_ids": [1]}, {"broker_ids": [1]}]}]},
        ),
    ),
    ApiKey.UPDATE_FEATURES: tuple(
        (
            f"{feature} {level} {kind}",
            {
                "feature_updates": [
                    {"feature": feature, "max_version_level": level, "upgrade_type": kind, "allow_downgrade": kind == 2},
                ]
            },
        )
        for feature in ("metadata.version", "transaction.version")
        for level in (-1, 0, 1, 99)
        for kind in (1, 2, 3)
    ),
    ApiKey.DESCRIBE_LOG_DIRS: (("all", {"topics": None}),),
    ApiKey.LIST_GROUPS: (
        ("of a state", {"states_filter": ["Stable"]}),
        ("of an unknown state", {"states_filter": ["Asleep"]}),
        ("of a type", {"types_filter": ["classic"]}),
        ("of another type", {"types_filter": ["consumer"]}),
        ("of an unknown type", {"types_filter": ["Nothing"]}),
    ),
    ApiKey.LIST_TRANSACTIONS: (
        ("ongoing", {"state_filters": ["Ongoing"]}),
        ("of an unknown state", {"state_filters": ["Asleep"]}),
        ("of a producer", {"producer_id_filters": [-1]}),
        ("of long", {"duration_filter": 1_000_000}),
        ("by pattern", {"transactional_id_pattern": ".*x"}),
        ("by a wrong pattern", {"transactional_id_pattern": "("}),
        ("by a pattern of none", {"transactional_id_pattern": ""}),
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (
        ("with a limit", {"response_partition_limit": 1}),
        ("from a cursor", {"cursor": {"topic_name": TOPIC, "partition_index": 1}}),
        ("from a cursor beyond", {"cursor": {"topic_name": TOPIC, "partition_index": 5}}),
    ),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (
        ("with nothing new", {"rebalance_timeout_ms": -1, "subscribed_topic_names": None, "topic_partitions": None}),
        ("gives one up", {"topic_partitions": [{"topic_id": Ref("tid"), "partitions": [0]}]}),
        ("subscribes to nothing", {"subscribed_topic_names": []}),
        ("again without it", {"subscribed_topic_names": None, "topic_partitions": []}),
        ("subscribes to what is not there", {"subscribed_topic_names": ["@no-topic"]}),
        ("joins again", {"member_epoch": 0, "topic_partitions": []}),
        ("joins again with partitions", {"member_epoch": 0}),
        ("joins without topics", {"member_id": "m2", "member_epoch": 0, "subscribed_topic_names": None, "topic_partitions": []}),
        ("a second joins", {"member_id": "m2", "member_epoch": 0, "topic_partitions": []}),
        ("the first gives way", {}),
        ("a static one joins", {**_STATIC, "member_id": "m3", "member_epoch": 0}),
        ("another takes its name", {**_STATIC, "member_id": "m4", "member_epoch": 0}),
        ("the static one leaves", {**_STATIC, "member_id": "m3", "member_epoch": -2}),
        ("another follows it", {**_STATIC, "member_id": "m4", "member_epoch": 0}),
        ("it leaves for good", {**_STATIC, "member_id": "m4", "member_epoch": -1}),
        ("of an assignor", {"server_assignor": "range"}),
        ("of an unknown assignor", {"server_assignor": "none"}),
        ("by a wrong pattern", {"subscribed_topic_regex": "("}),
        ("by a pattern", {"subscribed_topic_names": [], "subscribed_topic_regex": "nothing-.*"}),
        ("leaves", {"member_epoch": -1}),
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (
        ("twice", {"group_ids": [GROUP, GROUP]}),
        ("without operations", {"include_authorized_operations": False}),
    ),
    ApiKey.ADD_RAFT_VOTER: (
        *_VOTERS,
        ("without an endpoint", {"listeners": []}),
        ("without the controllers' endpoint", {"listeners": [{"name": "OTHER", "host": "localhost", "port": 9093}]}),
        ("in lower case", {"listeners": [{"name": "controller", "host": "localhost", "port": 9093}]}),
        ("not yet committed", {"ack_when_committed": False}),
    ),
    ApiKey.REMOVE_RAFT_VOTER: _VOTERS,
    ApiKey.LIST_CONFIG_RESOURCES: (("of brokers", {"resource_types": [4]}), ("of groups", {"resource_types": [32]})),
    ApiKey.DESCRIBE_CLUSTER: (("of controllers", {"endpoint_type": 2}), ("with fenced", {"include_fenced_brokers": True})),
    ApiKey.INIT_PRODUCER_ID: (("idempotent", {"transactional_id": None}),),
}


def scripts() -> Iterator[Script]:
    """Both slices."""
    for api_key, version in versions():
        base = BASES[api_key]
        name = f"{api_key.name}/v{version}"
        again = base.before if base.each_time else ()
        steps = [*base.before, Step("base", api_key, version, base.fields), Step("base again", api_key, version, base.fields)]
        for label, fields in _MORE.get(api_key, ()):
            # Version 0 of UpdateFeatures cannot only validate, and the script would change what all others find.
            is_for_good = api_key is ApiKey.UPDATE_FEATURES and version == 0
            if not is_for_good and fields.keys() & {spec.name for spec in request_fields(api_key, version)}:
                steps += [*again, Step(label, api_key, version, {**base.fields, **fields})]
        yield Script(f"valid/{name}", tuple(steps))
        yield Script(f"unknown/{name}", tuple(_unknown(api_key, version)))


def _unknown(api_key: ApiKey, version: int) -> Iterator[Step]:
    base = BASES[api_key]
    yield Step("all", api_key, version, mapped(base.fields, _UNKNOWN_NAMES, _UNKNOWN_REFS))
    yield from base.before
    for name, other in _UNKNOWN_NAMES.items():
        fields = mapped(base.fields, {name: other}, {"tid": _UNKNOWN_REFS["tid"]} if name == TOPIC else {})
        if fields != mapped(base.fields, {}, {}):
            yield Step(other, api_key, version, fields)
    for name, other in _UNKNOWN_REFS.items():
        fields = mapped(base.fields, {}, {name: other})
        if fields != mapped(base.fields, {}, {}):
            yield Step(f"unknown {name}", api_key, version, fields)
