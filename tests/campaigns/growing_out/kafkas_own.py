"""What Apache Kafka has and odradek does not serve, made in one run of Kafka's and asked for in the next: odradek keeps it.

features    group.version, share.version, streams.version, eligible.leader.replicas.version, finalized
groups      of the consumer protocol (KIP-848), with a member and offsets; a share group (KIP-932) and its state; a streams
            group (KIP-1071)
rights      an ACL, a SCRAM credential, a client quota
configs     of a group, of client metrics, dynamic ones of the broker and of all brokers
"""

from collections.abc import Callable
from typing import Any

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.growing_out.inventory import KEPT, Inventory
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.raw_client import RawClient

FEATURES = {"group.version": 1, "share.version": 2, "streams.version": 1, "eligible.leader.replicas.version": 1}
# Kafka needs them for ACLs; whoever asks has every right.
KAFKA_SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
CONSUMERS, SHARERS, STREAMERS = f"{KEPT}-consumers", f"{KEPT}-sharers", f"{KEPT}-streamers"
_MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
_BROKER, _CLIENT_METRICS, _GROUP = 4, 16, 32
_SET = 0


def leave_what_only_kafka_has(client: RawClient, topic: str) -> None:
    """Make all of it, groups on ``topic``."""
    updates = [{"feature": name, "max_version_level": level, "upgrade_type": 1} for name, level in FEATURES.items()]
    accept(client.call(ApiKey.UPDATE_FEATURES, 1, feature_updates=updates))
    _leave_groups(client, topic)
    _leave_rights(client)
    _leave_configs(client)


def kafkas_own(client: RawClient) -> Inventory:
    """All of it as Kafka tells it."""
    groups = [{"group_id": SHARERS, "topics": None}]
    answers: dict[str, Any] = {
        "consumer group": client.call(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[CONSUMERS]).groups[0],
        "share group": client.call(ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=[SHARERS]).groups[0],
        "streams group": client.call(ApiKey.STREAMS_GROUP_DESCRIBE, 0, group_ids=[STREAMERS]).groups[0],
        "share group's offsets": client.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=groups).groups[0],
        "consumer group's offsets": client.call(ApiKey.OFFSET_FETCH, 8, groups=[{"group_id": CONSUMERS, "topics": None}]).groups[
            0
        ],
        "quotas": client.call(
            ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=[{"entity_type": "user", "match_type": 2, "match": None}]
        ),
        "credentials": client.call(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=None),
        "rights": client.call(
            ApiKey.DESCRIBE_ACLS, 3, resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
        ),
        **{
            f"configs of {kind} {name}": [
                config.value for config in _describe_configs(client, kind, name).configs if config.name == key
            ]
            for kind, name, key, _ in _CONFIGS
        },
    }
    features = client.call(ApiKey.API_VERSIONS, 3, client_software_name="growing-out", client_software_version="1")
    finalized = {str(each.name): int(each.max_version_level) for each in features.finalized_features}
    return {name: repr(answer) for name, answer in answers.items()} | {"features": repr(sorted(finalized.items()))}


_CONFIGS = (
    (_GROUP, CONSUMERS, "consumer.session.timeout.ms", "50000"),
    (_CLIENT_METRICS, KEPT, "interval.ms", "12345"),
    # Not one of the cleaner, which would take its buffers a second time.
    (_BROKER, "1", "log.index.interval.bytes", "4095"),
    (_BROKER, "", "num.io.threads", "5"),
)


def _leave_configs(client: RawClient) -> None:
    resources = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{"name": key, "config_operation": _SET, "value": value}],
        }
        for kind, name, key, value in _CONFIGS
    ]
    for response in client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=resources).responses:
        accept(response)


def _describe_configs(client: RawClient, kind: int, name: str) -> Any:
    asked = [{"resource_type": kind, "resource_name": name, "configuration_keys": None}]
    return accept(client.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=asked).results[0])


def consumer_heartbeat(client: RawClient, group: str, topic: str) -> Any:
    """The first heartbeat of a group's member, with which it joins."""
    beat = {"member_id": _MEMBER, "member_epoch": 0, "rebalance_timeout_ms": 300_000}
    names = [topic]
    return insist(
        lambda: client.call(
            ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, group_id=group, subscribed_topic_names=names, topic_partitions=[], **beat
        )
    )


def _leave_groups(client: RawClient, topic: str) -> None:
    beat = {"member_id": _MEMBER, "member_epoch": 0, "rebalance_timeout_ms": 300_000}
    member = consumer_heartbeat(client, CONSUMERS, topic)
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 3, "committed_metadata": "kept"}]}]
    insist(
        lambda: (
            client.call(
                ApiKey.OFFSET_COMMIT,
                9,
                group_id=CONSUMERS,
                member_id=_MEMBER,
                generation_id_or_member_epoch=member.member_epoch,
                topics=topics,
            )
            .topics[0]
            .partitions[0]
        )
    )
    insist(
        lambda: client.call(
            ApiKey.SHARE_GROUP_HEARTBEAT, 1, group_id=SHARERS, member_id=_MEMBER, member_epoch=0, subscribed_topic_names=[topic]
        )
    )
    offsets = [{"group_id": SHARERS, "topics": None}]
    until(lambda: bool(client.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=offsets).groups[0].topics))
    topology = {"epoch": 1, "subtopologies": [{"subtopology_id": "0", "source_topics": [topic]}]}
    insist(
        lambda: client.call(
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            0,
            group_id=STREAMERS,
            topology=topology,
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id="kept",
            client_tags=[],
            task_offsets=None,
            task_end_offsets=None,
            **beat,
        )
    )


def _leave_rights(client: RawClient) -> None:
    entity = [{"entity_type": "user", "entity_name": "kept"}]
    entries = [{"entity": entity, "ops": [{"key": "producer_byte_rate", "value": 12345.0, "remove": False}]}]
    accept(client.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False).entries[0])
    credential = {"name": "kept", "mechanism": 1, "iterations": 4096, "salt": b"salt" * 4, "salted_password": b"word" * 8}
    accept(client.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[], upsertions=[credential]).results[0])
    right = {
        "resource_type": 2,
        "resource_name": KEPT,
        "resource_pattern_type": 3,
        "principal": "User:kept",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    accept(client.call(ApiKey.CREATE_ACLS, 3, creations=[right]).results[0])


def insist(call: Callable[[], Any]) -> Any:
    """The answer, once it has no error. Raises AssertionError."""
    answers = []

    def is_accepted() -> bool:
        answers.append(call())
        return not answers[-1].error_code

    try:
        until(is_accepted)
    except TimeoutError:
        raise AssertionError(answers[-1]) from None
    return answers[-1]


def accept(answer: Any) -> Any:
    """The answer, which has no error. Raises AssertionError."""
    assert not answer.error_code, answer
    return answer
