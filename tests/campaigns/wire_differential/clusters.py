"""The stories at clusters of three brokers: who does what, so that each request has one broker to go to.

The first broker leads all topics' partitions and coordinates all share states, the second coordinates all groups, the third all
transactions; each partition has a replica at each. So a produce asks the coordinator of its transaction at another broker, and
markers go to two others.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from benchmarks.cluster.clusters import BROKERS, KafkaCluster, OdradekCluster
from odradek.controller.metadata.topic import SHARE_GROUP_STATE_TOPIC
from odradek.protocol.api_keys import ApiKey
from tests.campaigns.kafka_tools.kafka_broker import accepts, until
from tests.campaigns.wire_differential.script import Script, Step
from tests.campaigns.wire_differential.settings import OF_KAFKA, SETTINGS

# The slices whose scripts have more than one request in a row.
STORIES: Final = ("groups", "consumers", "transactions")
# Until all brokers know of a change.
SPREADS_S: Final = 0.1
LED_BY_FIRST: Final = (1, 2, 3)
INTERNAL_TOPICS: Final = {
    "__consumer_offsets": (2, 3, 1),
    "__transaction_state": (3, 1, 2),
    SHARE_GROUP_STATE_TOPIC: LED_BY_FIRST,
}
_OF_GROUPS: Final = (
    *(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT),
    *(ApiKey.DESCRIBE_GROUPS, ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS, ApiKey.CONSUMER_GROUP_DESCRIBE),
    *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE, ApiKey.TXN_OFFSET_COMMIT),
)
_OF_TRANSACTIONS: Final = (
    *(ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN),
    *(ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS),
)
_BROKERS: Final[Mapping[int, int]] = {**dict.fromkeys(_OF_GROUPS, 1), **dict.fromkeys(_OF_TRANSACTIONS, 2)}


def broker_for(api: ApiKey | int) -> int:
    """The index of the broker that requests of an API go to."""
    return _BROKERS.get(api, 0)


def adapted(step: Step) -> Mapping[str, Any]:
    """A step's fields: topics get their replicas where they belong, and records may be read when they are acknowledged."""
    if step.api == ApiKey.PRODUCE and step.fields.get("acks") == 1:
        return {**step.fields, "acks": -1}
    if step.api != ApiKey.CREATE_TOPICS:
        return step.fields
    topics = [
        topic if "assignments" in topic else topic | _assigned(int(topic["num_partitions"]), LED_BY_FIRST)
        for topic in step.fields["topics"]
    ]
    return {**step.fields, "topics": topics}


def _assigned(partitions: int, replicas: tuple[int, ...]) -> dict[str, Any]:
    assignments = [{"partition_index": each, "broker_ids": list(replicas)} for each in range(partitions)]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": assignments}


def internal_topics(*left_out: str) -> Script:
    """Makes the coordinators' topics, when all brokers are there."""
    compacted = [{"name": "cleanup.policy", "value": "compact"}]
    topics = [
        {
            "name": name,
            "configs": [] if name == SHARE_GROUP_STATE_TOPIC else compacted,
            **_assigned(int(SETTINGS["offsets.topic.num.partitions"]), replicas),
        }
        for name, replicas in INTERNAL_TOPICS.items()
        if name not in left_out
    ]
    asked = {"topics": topics, "timeout_ms": 10_000}
    # NONE, TOPIC_ALREADY_EXISTS
    return Script("internal", (Step("", ApiKey.CREATE_TOPICS, 5, asked, until=("topics.error_code", (0, 36))),))


@contextmanager
def serving(make: type[KafkaCluster | OdradekCluster]) -> Iterator[str]:
    """The addresses of three brokers, ready."""
    settings = {**SETTINGS, **OF_KAFKA} if make is KafkaCluster else SETTINGS
    with (
        tempfile.TemporaryDirectory(prefix="odradek-wire-") as scratch,
        closing(make(Path(scratch) / "cluster", settings, is_for_loads=False)) as cluster,
    ):
        cluster.spawn()
        addresses = cluster.address.split(",")
        until(lambda: all(map(accepts, addresses)))
        # A partition is not led by its first replica if that broker is still fenced when the topic is created.
        until(lambda: all(map(_lists_all, addresses)))
        yield cluster.address


def _lists_all(address: str) -> bool:
    """Return whether a broker lists every broker, which are unfenced then."""
    try:
        found = AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=2)
    except KafkaException:
        return False
    return len(found.brokers) == BROKERS
