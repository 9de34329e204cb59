"""What a hostile request of a few bytes finds in the broker, and is to be answered with: groups, producers, transactions, quotas.

Each is made by valid requests of one client before anything is measured, and stays while the broker runs.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import Record, build_batch
from tests.campaigns.hostile_requests.cluster import KNOWN, create_topic
from tests.raw_client import RawClient, produce_fields

# Members must outlive the campaign: none of them sends heartbeats.
_FOR_EVER_MS = 24 * 60 * 60 * 1000
SETTINGS: dict[str, object] = {
    "auto.create.topics.enable": "true",
    "offsets.topic.num.partitions": 10,
    "transaction.state.log.num.partitions": 10,
    "group.initial.rebalance.delay.ms": 0,
    "group.max.session.timeout.ms": _FOR_EVER_MS,
    "group.consumer.max.session.timeout.ms": _FOR_EVER_MS,
    "group.consumer.session.timeout.ms": _FOR_EVER_MS,
    "transaction.max.timeout.ms": _FOR_EVER_MS,
}
# With them DescribeAcls has something to describe.
ACL_SETTINGS: dict[str, object] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
# As many names of 48 bytes as fit into a member's record.
_NAMES = [f"{'n' * 43}{number:05}" for number in range(19_000)]
_LONG = 10_000
_LONG_IDS = 1_000
_MANY_PARTITIONS = 1_000
# Nearly what a record may have.
_METADATA_BYTES = 900_000
# Requests sent before their answers are looked for.
_PIPELINED = 100

TEN = "ten"
FORTY_ONE = "forty-one"
CLASSIC = "classic"
CLASSIC_GROUPS = 40
OFFSETS_GROUP = "of"
PRODUCERS = "producers"
MORE_PRODUCERS = "more-producers"
WIDE = "thousand"
TRANSACTION = "tx"
RECORDS = "records"
LONG_GROUPS = "long groups"
LONG_TRANSACTIONAL_IDS = "long transactional ids"
CLIENT_QUOTAS = "client quotas"
SCRAM_USERS = "scram users"
ACLS = "acls"


def _members(group: str, count: int) -> Callable[[RawClient], None]:
    def make(client: RawClient) -> None:
        for member in range(count):
            answer = client.call(
                ApiKey.CONSUMER_GROUP_HEARTBEAT,
                0,
                group_id=group,
                member_id=f"{group}-{member}",
                rebalance_timeout_ms=_FOR_EVER_MS,
                subscribed_topic_names=_NAMES,
                topic_partitions=[],
            )
            assert not answer.error_code, answer

    return make


def _classic_groups(client: RawClient) -> None:
    """Groups of one member each whose metadata is large."""
    for number in range(CLASSIC_GROUPS):
        fields = {"group_id": f"{CLASSIC}{number:02}", "session_timeout_ms": _FOR_EVER_MS, "protocol_type": "consumer"}
        protocols = [{"name": "range", "metadata": bytes(_METADATA_BYTES)}]
        answer = client.call(ApiKey.JOIN_GROUP, 3, **fields, rebalance_timeout_ms=_FOR_EVER_MS, protocols=protocols)
        assert not answer.error_code, answer.error_code
        member = {"group_id": fields["group_id"], "generation_id": answer.generation_id, "member_id": answer.member_id}
        assigned = client.call(ApiKey.SYNC_GROUP, 3, **member, assignments=[{"member_id": answer.member_id, "assignment": b""}])
        assert not assigned.error_code, assigned


def _wide_topic(client: RawClient) -> None:
    create_topic(client, WIDE, _MANY_PARTITIONS)


def _offsets(client: RawClient) -> None:
    _wide_topic(client)
    partitions = [{"partition_index": index, "committed_offset": 1} for index in range(_MANY_PARTITIONS)]
    _commit(client, OFFSETS_GROUP, WIDE, partitions)


def _commit(client: RawClient, group: str, topic: str, partitions: list[dict[str, Any]]) -> None:
    fields = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
    answer = client.call(ApiKey.OFFSET_COMMIT, 8, **fields, topics=[{"name": topic, "partitions": partitions}])
    assert not any(partition.error_code for partition in answer.topics[0].partitions), answer


def _long_groups(client: RawClient) -> None:
    for name in _long_ids():
        _commit(client, name, KNOWN, [{"partition_index": 0, "committed_offset": 1}])


def _long_transactional_ids(client: RawClient) -> None:
    for name in _long_ids():
        answer = client.call(ApiKey.INIT_PRODUCER_ID, 3, transactional_id=name, transaction_timeout_ms=60_000)
        assert not answer.error_code, answer


def _long_ids() -> Iterator[str]:
    return (f"{'i' * (_LONG - 5)}{number:05}" for number in range(_LONG_IDS))


def _producers(topic: str, count: int) -> Callable[[RawClient], None]:
    def make(client: RawClient) -> None:
        """One batch each, in requests of their own: of a partition that is named twice Kafka takes one."""
        create_topic(client, topic, 1)
        records = [Record(timestamp=int(1000 * time.time()), value=b"v")]
        for first in range(0, count, _PIPELINED):
            for producer_id in range(first, first + _PIPELINED):
                batch = build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=0)
                client.send(ApiKey.PRODUCE, 9, **produce_fields(topic, batch, acks=1))
            for _ in range(_PIPELINED):
                assert client.receive_frame()

    return make


def _transaction(client: RawClient) -> None:
    """One with many partitions that nobody ends."""
    _wide_topic(client)
    begun = client.call(ApiKey.INIT_PRODUCER_ID, 3, transactional_id=TRANSACTION, transaction_timeout_ms=_FOR_EVER_MS)
    answer = client.call(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        v3_and_below_transactional_id=TRANSACTION,
        v3_and_below_producer_id=begun.producer_id,
        v3_and_below_producer_epoch=begun.producer_epoch,
        v3_and_below_topics=[{"name": WIDE, "partitions": list(range(_MANY_PARTITIONS))}],
    )
    assert not any(each.partition_error_code for each in answer.results_by_topic_v3_and_below[0].results_by_partition), answer


def _client_quotas(client: RawClient) -> None:
    entries = [
        {
            "entity": [{"entity_type": "user", "entity_name": f"{'u' * 195}{number:05}"}],
            "ops": [{"key": "consumer_byte_rate", "value": 1e9, "remove": False}],
        }
        for number in range(5_000)
    ]
    answer = client.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False)
    assert not any(entry.error_code for entry in answer.entries), answer.entries[0]


def _scram_users(client: RawClient) -> None:
    users = [
        {
            "name": f"{'u' * 195}{number:05}",
            "mechanism": 1,
            "iterations": 4096,
            "salt": bytes(16),
            "salted_password": bytes(32),
        }
        for number in range(2_000)
    ]
    answer = client.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=[], upsertions=users)
    assert not any(each.error_code for each in answer.results), answer.results[0]


def _acls(client: RawClient) -> None:
    creations = [
        {
            "resource_type": 2,
            "resource_name": f"topic-{number}",
            "principal": f"User:{'u' * 195}",
            "host": "*",
            "operation": 3,
            "permission_type": 3,
        }
        for number in range(10_000)
    ]
    answer = client.call(ApiKey.CREATE_ACLS, 3, creations=creations)
    assert not any(each.error_code for each in answer.results), answer.results[0]


def _records(client: RawClient) -> None:
    """Sixty records of nearly a MiB."""
    create_topic(client, RECORDS, 1)
    for _ in range(60):
        answer = client.produce(RECORDS, bytes(1_000_000), acks=1)
        assert not answer.error_code, answer


FOUND: dict[str, Callable[[RawClient], None]] = {
    TEN: _members(TEN, 10),
    FORTY_ONE: _members(FORTY_ONE, 41),
    CLASSIC: _classic_groups,
    WIDE: _wide_topic,
    OFFSETS_GROUP: _offsets,
    LONG_GROUPS: _long_groups,
    LONG_TRANSACTIONAL_IDS: _long_transactional_ids,
    PRODUCERS: _producers(PRODUCERS, 20_000),
    MORE_PRODUCERS: _producers(MORE_PRODUCERS, 100_000),
    TRANSACTION: _transaction,
    CLIENT_QUOTAS: _client_quotas,
    SCRAM_USERS: _scram_users,
    ACLS: _acls,
    RECORDS: _records,
}


def make(host: str, port: int, name: str) -> None:
    """Have it there."""
    with RawClient(host, port) as client:
        client.socket.settimeout(600)
        FOUND[name](client)
