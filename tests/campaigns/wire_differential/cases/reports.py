"""Slice ``reports``: what users of Kafka and its kin have reported of brokers, each as a story."""

from collections.abc import Callable, Iterator
from typing import Any

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.wire_differential.cases.setup import TOPIC, topic
from tests.campaigns.wire_differential.driver import FIRST_TIMESTAMP
from tests.campaigns.wire_differential.script import Batch, Ref, Script, Step

_BASE_TIMESTAMP_AT, _MAX_TIMESTAMP_AT = 27, 35
_NO_TIMESTAMP = (_MAX_TIMESTAMP_AT, bytes([0xFF] * 8))
# In 2100, which is later than any topic takes.
_MUCH_LATER = (_BASE_TIMESTAMP_AT, (4_102_444_800_000).to_bytes(8, "big"))
_LARGEST, _RELEASE = -3, ("eligible.leader.replicas", "group", "kraft", "share", "streams")
_IDS = 13
# Later versions tell of each record, and what time it is.
_TELLS_NO_RECORDS = 7


def max_timestamps() -> Iterator[Step]:
    """A producer that writes no max timestamp into its headers, among others (sarama 3108)."""
    for codec in range(5):
        name = f"@t{codec}"
        yield from topic(name)
        yield _produce(
            f"produces without a max timestamp, codec {codec}", Batch(3, {"compression": codec}, (_NO_TIMESTAMP,)), name
        )
        yield _offset(f"finds a time, codec {codec}", FIRST_TIMESTAMP + 2, name)
        yield _offset(f"finds the largest, codec {codec}", _LARGEST, name)
    yield from topic()
    yield _produce("produces without a max timestamp", Batch(3, patch=(_NO_TIMESTAMP,)))
    yield _produce("produces a max timestamp", Batch(2))
    yield _produce("produces what is too late", Batch(2, patch=(_MUCH_LATER, _NO_TIMESTAMP)), version=_TELLS_NO_RECORDS)
    yield _produce("produces a max timestamp below the base", Batch(2, patch=((_MAX_TIMESTAMP_AT, bytes([0] * 8)),)))
    for after in range(4):
        yield _offset(f"finds {after} ms after the first", FIRST_TIMESTAMP + after)


def fetch_sessions() -> Iterator[Step]:
    """A topic that is deleted, and made anew, under a fetch session (franz-go 1404, 1429)."""
    yield from topic(bind="old")
    yield _fetch("begins", 0, "old")
    yield from _delete()
    yield _fetch("deleted", 1)
    yield _fetch("deleted, named again", 2, "old")
    yield from topic(bind="new")
    asked = {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}]}
    yield Step("", ApiKey.LIST_OFFSETS, 7, asked, until=("topics.partitions.error_code", (0,)))
    yield _fetch("made anew", 3)
    yield _fetch("made anew, named again", 4, "old")
    yield _fetch("made anew, named by the new id", 5, "new")
    yield _fetch("begins with the old id", 0, "old")


def no_cleanup_policy() -> Iterator[Step]:
    """Records are deleted where no policy would (KIP-1161)."""
    for name, policy in ((TOPIC, ""), ("@compacted", "compact")):
        yield from topic(name)
        configs = [{"name": "cleanup.policy", "value": policy, "config_operation": 0}]
        resources = [{"resource_type": 2, "resource_name": name, "configs": configs}]
        yield Step(f"sets {policy!r}", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": resources})
        yield _produce(f"produces to {policy!r}", Batch(3), name)
        partitions = [{"partition_index": 0, "offset": 2}]
        asked = {"topics": [{"name": name, "partitions": partitions}], "timeout_ms": 5_000}
        yield Step(f"deletes records of {policy!r}", ApiKey.DELETE_RECORDS, 2, asked)


def features() -> Iterator[Step]:
    """What kafka-features.sh upgrade asks for, which would not leave the broker to the other scripts as it is."""
    levels = {**{f"{name}.version": 1 for name in _RELEASE}, "metadata.version": 30, "transaction.version": 2}
    for metadata_version in (30, 31, 33):
        wanted = levels | {"metadata.version": metadata_version}
        updates = [{"feature": name, "max_version_level": level, "upgrade_type": 1} for name, level in wanted.items()]
        asked = {"timeout_ms": 10_000, "feature_updates": updates, "validate_only": True}
        yield Step(f"upgrades all to {metadata_version}", ApiKey.UPDATE_FEATURES, 2, asked)


def _produce(label: str, batch: Batch, name: str = TOPIC, version: int = 9) -> Step:
    data = [{"name": name, "partition_data": [{"index": 0, "records": batch}]}]
    return Step(label, ApiKey.PRODUCE, version, {"acks": -1, "timeout_ms": 5_000, "topic_data": data})


def _offset(label: str, timestamp: int, name: str = TOPIC) -> Step:
    asked = [{"name": name, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
    return Step(label, ApiKey.LIST_OFFSETS, 7, {"topics": asked})


def _fetch(label: str, epoch: int, *ids: str) -> Step:
    partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
    asked: dict[str, Any] = {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "session_id": Ref("session", 0) if epoch else 0,
        "session_epoch": epoch,
        "topics": [{"topic_id": Ref(each), "partitions": partitions} for each in ids],
    }
    return Step(label, ApiKey.FETCH, _IDS, asked, bind={} if epoch else {"session": "session_id"})


def _delete() -> Iterator[Step]:
    yield Step("", ApiKey.DELETE_TOPICS, 5, {"topic_names": [TOPIC], "timeout_ms": 10_000})
    asked = {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": False}
    yield Step("", ApiKey.METADATA, 12, asked, until=("topics.error_code", (3,)))


STORIES: tuple[Callable[[], Iterator[Step]], ...] = (max_timestamps, fetch_sessions, no_cleanup_policy, features)


def scripts() -> Iterator[Script]:
    """One for each story."""
    for story in STORIES:
        yield Script(f"reports/{story.__name__}", tuple(story()))
