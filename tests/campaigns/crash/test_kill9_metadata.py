"""kill -9 while topics are created, deleted and altered: acknowledged changes persist, and a topic is complete or absent."""

from dataclasses import dataclass, field, replace

import pytest

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.crash.support import read_log, rounds, seeded, until_killed
from tests.raw_client import RawClient

KILLS = 6
RETENTION_MS, SEGMENT_BYTES = "retention.ms", "segment.bytes"
TOPIC_RESOURCE, DYNAMIC_TOPIC_CONFIG, SET, DELETE = 2, 1, 0, 1


@dataclass(frozen=True)
class Topic:
    """A topic as a client sees it; ``topic_id`` is None where the client was not told."""

    partitions: int
    configs: dict[str, str] = field(hash=False)
    topic_id: object = None

    def may_be(self, seen):
        return (self.partitions, self.configs) == (seen.partitions, seen.configs) and self.topic_id in (None, seen.topic_id)


class Administrator:
    """Runs one operation after another, and knows which are acknowledged and which may or may not have happened.

    ``topics`` must exist; ``doubt`` is the one topic with an unanswered change, and the alternatives to its known state (None:
    absent).
    """

    def __init__(self, rng):
        self.topics = {}
        self.doubt = None
        self.done = 0
        self._rng = rng
        self._number = 0

    def step(self, client, operations):
        """One operation, drawn from the names of the methods below."""
        operation = self._rng.choice(operations if self.topics else ["create"])
        if operation == "create":
            self._create(client)
        else:
            name = self._rng.choice(sorted(self.topics))
            {"delete": self._delete, "alter": self._alter, "grow": self._grow}[operation](client, name)
        self.doubt = None
        self.done += 1

    def settle(self, seen):
        """Compare with the state after a restart, and adopt that state for the change in doubt."""
        if self.doubt is not None:
            name, possible = self.doubt
            assert any(seen.get(name) is None if topic is None else topic.may_be(seen[name]) for topic in possible), (
                f"{name} is {seen.get(name)}, which is none of {possible}"
            )
            self.topics.pop(name, None)
            if name in seen:
                self.topics[name] = seen[name]
        self.doubt = None
        assert seen == self.topics

    def _create(self, client):
        self._number += 1
        name = f"topic-{self._number}"
        topic = Topic(self._rng.randrange(1, 5), {SEGMENT_BYTES: "2000000", RETENTION_MS: str(self._number)})
        self.doubt = (name, [None, topic])
        asked = {
            "name": name,
            "num_partitions": topic.partitions,
            "replication_factor": 1,
            "configs": [{"name": key, "value": value} for key, value in topic.configs.items()],
        }
        (created,) = client.call(ApiKey.CREATE_TOPICS, 7, topics=[asked], timeout_ms=5000).topics
        assert created.error_code == 0
        self.topics[name] = replace(topic, topic_id=created.topic_id)

    def _delete(self, client, name):
        self.doubt = (name, [None, self.topics[name]])
        (deleted,) = client.call(ApiKey.DELETE_TOPICS, 6, topics=[{"name": name}], timeout_ms=5000).responses
        assert deleted.error_code == 0
        del self.topics[name]

    def _alter(self, client, name):
        self._number += 1
        topic = self.topics[name]
        configs = {RETENTION_MS: str(self._number)}
        changes = [{"name": RETENTION_MS, "config_operation": SET, "value": configs[RETENTION_MS]}]
        if SEGMENT_BYTES in topic.configs:
            changes.append({"name": SEGMENT_BYTES, "config_operation": DELETE, "value": None})
        else:
            configs[SEGMENT_BYTES] = "3000000"
            changes.append({"name": SEGMENT_BYTES, "config_operation": SET, "value": "3000000"})
        changed = replace(topic, configs=configs)
        self.doubt = (name, [topic, changed])
        resource = {"resource_type": TOPIC_RESOURCE, "resource_name": name, "configs": changes}
        (altered,) = client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource]).responses
        assert altered.error_code == 0
        self.topics[name] = changed

    def _grow(self, client, name):
        topic = self.topics[name]
        grown = replace(topic, partitions=topic.partitions + 1)
        self.doubt = (name, [topic, grown])
        asked = {"name": name, "count": grown.partitions, "assignments": None}
        (result,) = client.call(ApiKey.CREATE_PARTITIONS, 3, topics=[asked], timeout_ms=5000).results
        assert result.error_code == 0
        self.topics[name] = grown


def topics_seen(client):
    """Every topic. Each must be complete: partitions 0 to n, all with a leader."""
    described = client.call(ApiKey.METADATA, 12, topics=None).topics
    configs = {}
    if described:
        resources = [
            {"resource_type": TOPIC_RESOURCE, "resource_name": topic.name, "configuration_keys": None} for topic in described
        ]
        for result in client.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=resources).results:
            assert result.error_code == 0
            configs[result.resource_name] = {
                config.name: config.value for config in result.configs if config.config_source == DYNAMIC_TOPIC_CONFIG
            }
    seen = {}
    for topic in described:
        assert topic.error_code == 0
        assert [(partition.partition_index, partition.error_code, partition.leader_id) for partition in topic.partitions] == [
            (index, 0, 1) for index in range(len(topic.partitions))
        ]
        seen[topic.name] = Topic(len(topic.partitions), configs[topic.name], topic.topic_id)
    return seen


def partition_directories(broker):
    names = [path.name for path in broker.data_dir.iterdir() if path.is_dir() and not path.name.endswith("-delete")]
    return {name for name in names if not name.startswith("__")}


@pytest.mark.parametrize(
    "operations",
    [["create"], ["create", "delete"], ["create", "alter", "alter", "alter"], ["create", "delete", "alter", "grow"]],
    ids="-".join,
)
def test_what_was_acknowledged_stands_and_every_topic_is_whole_or_absent(broker_process, operations):
    rng = seeded("metadata")
    administrator = Administrator(rng)
    broker = broker_process()
    for _ in rounds(KILLS, lambda: administrator.done):
        with RawClient(broker.host, broker.port) as client:
            until_killed(broker, rng.uniform(0.005, 0.1), lambda client=client: administrator.step(client, operations))
        broker.start()
        with RawClient(broker.host, broker.port) as client:
            administrator.settle(topics_seen(client))
        assert partition_directories(broker) == {
            f"{name}-{index}" for name, topic in administrator.topics.items() for index in range(topic.partitions)
        }
    assert administrator.done > KILLS


def test_a_topic_made_in_place_of_one_deleted_has_none_of_its_records(broker_process):
    rng = seeded("recreate")
    broker = broker_process()
    generation = 0

    def recreate_and_produce(client):
        nonlocal generation
        client.call(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "again"}], timeout_ms=5000)
        topic = {"name": "again", "num_partitions": 1, "replication_factor": 1}
        client.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000)
        generation += 1
        for _ in range(3):
            assert client.produce("again", b"%d" % generation).error_code == 0

    for _ in range(KILLS):
        with RawClient(broker.host, broker.port) as client:
            until_killed(broker, rng.uniform(0.005, 0.1), lambda client=client: recreate_and_produce(client))
        broker.start()
        with RawClient(broker.host, broker.port) as client:
            seen = topics_seen(client)
            values = {record.value for record in read_log(client, "again")} if "again" in seen else set()
        assert len(values) <= 1


def test_producer_ids_are_never_given_twice(broker_process):
    rng = seeded("producer ids")
    broker = broker_process()
    given = []

    def ask(client):
        response = client.call(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout_ms=1000)
        assert response.error_code == 0
        given.append(response.producer_id)

    for _ in rounds(KILLS, lambda: len(given)):
        with RawClient(broker.host, broker.port) as client:
            until_killed(broker, rng.uniform(0.001, 0.1), lambda client=client: ask(client))
        broker.start()
    assert len(given) > KILLS
    assert len(set(given)) == len(given)
