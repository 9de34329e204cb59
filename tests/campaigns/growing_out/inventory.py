"""What a broker says that it has of topics, groups, transactions and producers, as plain values by name.

Only of what has a name that begins with ``KEPT``: the rest is written meanwhile.
"""

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, cast

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.client_codecs import response_decoder
from odradek.protocol.record_batch import iter_batches
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.raw_client import RawClient, fetch_fields

KEPT = "kept"
_TOPIC, _BROKER = 2, 4
_LATEST, _EARLIEST = -1, -2
Inventory = dict[str, object]


class NotYet(Exception):
    """A broker that has begun to serve cannot tell yet."""


def settled(take: Callable[[], Inventory], wanted: Inventory | None, settle_s: float) -> Inventory:
    """What ``take`` finds, and ``wanted`` if that comes to pass: a coordinator that is to load yet tells of no group."""
    taken: list[Inventory] = []
    errors: list[Exception] = []

    def is_settled() -> bool:
        try:
            taken.append(take())
        except NotYet as error:
            errors.append(error)
            return False
        return wanted is None or taken[-1] == wanted

    try:
        until(is_settled, settle_s)
    except TimeoutError:
        if not taken:
            raise AssertionError(errors[-1]) from None
    return taken[-1]


def take_inventory(client: RawClient, *, broker: str = "1") -> Inventory:
    """Everything that is kept, asked of ``broker``. Raises NotYet for an error, or where a transaction is being ended."""
    topics = sorted(
        (topic for topic in client.call(ApiKey.METADATA, 12, topics=None).topics if str(topic.name).startswith(KEPT)),
        key=lambda topic: str(topic.name),
    )
    found: Inventory = {}
    for topic in topics:
        _accepted(topic.error_code)
        found[f"topic {topic.name}"] = (str(topic.topic_id), len(topic.partitions))
        for index in range(len(topic.partitions)):
            found |= _partition(client, topic.name, index)
    found |= _configs(client, [(_TOPIC, topic.name) for topic in topics] + [(_BROKER, broker), (_BROKER, "")])
    groups, transactions = client.call(ApiKey.LIST_GROUPS, 4), client.call(ApiKey.LIST_TRANSACTIONS, 0)
    for answer in (groups, transactions):
        _accepted(answer.error_code)
    for group in _names(groups.groups, "group_id"):
        found |= _offsets(client, group)
    for name in _names(transactions.transaction_states, "transactional_id"):
        found |= _transaction(client, name)
    return found


def differences(before: Inventory, after: Inventory) -> Iterator[str]:
    """One line for each thing that is not what it was."""
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield f"{name}: {before.get(name, 'not there')}, then {after.get(name, 'not there')}"


def _partition(client: RawClient, topic: str, index: int) -> Inventory:
    start, end = (_offset(client, topic, index, which, 0) for which in (_EARLIEST, _LATEST))
    data = b""
    offset = start
    while offset < end:
        answer = client.call(ApiKey.FETCH, 12, **fetch_fields(topic, offset, partition=index)).responses[0].partitions[0]
        _accepted(answer.error_code)
        assert answer.records, f"{topic}-{index} ends at {offset}, and not at {end}"
        data += answer.records
        for _, header in iter_batches(answer.records):
            offset = header.next_offset
    place = {"name": topic, "partition_indexes": [index]}
    answer = client.call(ApiKey.DESCRIBE_PRODUCERS, 0, topics=[place]).topics[0].partitions[0]
    _accepted(answer.error_code)
    return {
        f"records {topic}-{index}": (start, end, len(data), sha256(data).hexdigest()[:16]),
        f"last stable offset {topic}-{index}": _offset(client, topic, index, _LATEST, 1),
        **{
            f"producer {each.producer_id} of {topic}-{index}": (
                *(each.producer_epoch, each.last_sequence, each.coordinator_epoch, each.current_txn_start_offset),
            )
            for each in answer.active_producers
        },
    }


def _offset(client: RawClient, topic: str, index: int, which: int, isolation: int) -> int:
    asked = {"partition_index": index, "timestamp": which}
    topics = [{"name": topic, "partitions": [asked]}]
    answer = client.call(ApiKey.LIST_OFFSETS, 5, replica_id=-1, isolation_level=isolation, topics=topics).topics[0].partitions[0]
    _accepted(answer.error_code)
    return int(answer.offset)


def _configs(client: RawClient, resources: list[tuple[int, str]]) -> Inventory:
    asked = [{"resource_type": kind, "resource_name": name, "configuration_keys": None} for kind, name in resources]
    found: Inventory = {}
    for result in client.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=asked).results:
        _accepted(result.error_code)
        name = result.resource_name if result.resource_type == _TOPIC or not result.resource_name else "the broker"
        found[f"configs {result.resource_type} {name}"] = {
            config.name: config.value for config in result.configs if _is_own(int(result.resource_type), config)
        }
    return found


def _is_own(resource_type: int, config: Any) -> bool:
    """Whether it was set there, not inherited; of a broker, of a log: odradek does not tell the value of what it ignores."""
    if resource_type == _TOPIC:
        return bool(config.config_source == 1)
    return config.config_source in {2, 3} and config.name.startswith("log.")


def _offsets(client: RawClient, group: str) -> Inventory:
    answer = client.call(ApiKey.OFFSET_FETCH, 8, groups=[{"group_id": group, "topics": None}]).groups[0]
    _accepted(answer.error_code)
    return {
        f"offset {group} {topic.name}-{each.partition_index}": (each.committed_offset, each.metadata)
        for topic in answer.topics
        for each in topic.partitions
    }


def _transaction(client: RawClient, name: str) -> Inventory:
    client.send(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[name])
    frame = client.receive_frame()
    assert frame is not None
    # kio reads no time before 1970, and Kafka says -1 for none.
    (state,) = cast("Any", response_decoder(ApiKey.DESCRIBE_TRANSACTIONS, 0)(frame)).transaction_states
    _accepted(state.error_code)
    if str(state.transaction_state).startswith("Prepare"):
        raise NotYet(f"{name} is in {state.transaction_state}")
    partitions = sorted((str(topic.topic), sorted(topic.partitions)) for topic in state.topics)
    return {
        f"transaction {name}": (
            *(str(state.transaction_state), state.producer_id, state.producer_epoch, state.transaction_timeout_ms),
            state.transaction_start_time_ms,
            partitions,
        )
    }


def _names(listed: Any, attribute: str) -> list[str]:
    names = (str(getattr(each, attribute)) for each in listed)
    return sorted(name for name in names if name.startswith(KEPT))


def _accepted(code: int) -> None:
    if code:
        raise NotYet(f"error {code}")
