"""What clients write to compacted topics of Kafka's, for its cleaner and odradek's to compact: round after round of it.

    plain-L, plain-B     the same keys again and again, a tenth of them tombstones; headers; a codec after the other; timestamps
                         that go back and forth
    stamped              message.timestamp.type=LogAppendTime, batches from an idempotent producer
    packed               compression.type=zstd, whatever the producers send
    large                records of 300 KB, more than a cleaner reads at once
    idle                 idempotent producers all of whose records are overwritten: their last sequence numbers must stay
    txn-L, txn-B         transactions of three producers that overlap: committed, aborted, one without an end when a round is over
    __consumer_offsets   the same offsets again and again: plain, in transactions, deleted with their group; members of both
                         protocols that come and go, topics by name and by a regular expression
    __transaction_state  the states of all these

Of -L topics tombstones and markers stay for ten minutes after the clean that found that they can go, of -B topics for a
millisecond: tombstones are gone after two rounds, markers after three. Segments are of a few dozen batches each, but for
``large``, which has Kafka's smallest.
"""

import time
from random import Random

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from tests.campaigns.kafka_tools.kafka_broker import SMALLEST_SEGMENT_BYTES, TIMEOUT_S, commit

_LONG_MS, _BRIEF_MS, _KAFKAS_MS = 600_000, 1, 86_400_000
_SMALL_SEGMENT_BYTES = 12_000
_SEGMENT_BYTES = {"large": SMALLEST_SEGMENT_BYTES, "idle": 6_000}
_WIDE_PARTITIONS = 40
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_GROUPS = 8
# Producers of long ago would be forgotten, and their sequence numbers with them.
_NOW_MS = time.time_ns() // 1_000_000

_RETENTIONS_MS = {
    "plain-B": _BRIEF_MS,
    "txn-B": _BRIEF_MS,
    "__consumer_offsets": _KAFKAS_MS,
    "__transaction_state": _KAFKAS_MS,
}
PARTITIONS = {
    "plain-L": 2,
    "plain-B": 2,
    "stamped": 1,
    "packed": 1,
    "large": 1,
    "idle": 1,
    "txn-L": 2,
    "txn-B": 2,
    "__consumer_offsets": 2,
    "__transaction_state": 2,
}
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.retention.check.interval.ms": "600000",
}
_EXTRA = {"stamped": {"message.timestamp.type": "LogAppendTime"}, "packed": {"compression.type": "zstd"}}


def retention_ms(topic: str) -> int:
    """``delete.retention.ms`` of a topic."""
    return _RETENTIONS_MS.get(topic, _LONG_MS)


def segment_bytes(topic: str) -> int:
    """The size of its segments."""
    return _SEGMENT_BYTES.get(topic, _SMALL_SEGMENT_BYTES)


def create_topics(address: str) -> None:
    """All of them, and those of the coordinators in small segments too."""
    admin = AdminClient({"bootstrap.servers": address})
    topics = [NewTopic("wide", _WIDE_PARTITIONS, 1)]
    for name, count in PARTITIONS.items():
        config = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": str(retention_ms(name)),
            "internal.segment.bytes": str(segment_bytes(name)),
            **_EXTRA.get(name, {}),
        }
        if not name.startswith("__"):
            topics.append(NewTopic(name, count, 1, config=config))
    for created in admin.create_topics(topics).values():
        created.result(TIMEOUT_S)
    # The first request to each coordinator creates its topic.
    Consumer({"bootstrap.servers": address, "group.id": "first"}).committed([TopicPartition("wide", 0)], TIMEOUT_S)
    Producer({"bootstrap.servers": address, "transactional.id": "first"}).init_transactions(TIMEOUT_S)
    small = ConfigEntry("internal.segment.bytes", str(_SMALL_SEGMENT_BYTES), incremental_operation=AlterConfigOpType.SET)
    of_coordinators = [
        ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[small]) for name in PARTITIONS if name[0] == "_"
    ]
    for altered in admin.incremental_alter_configs(of_coordinators).values():
        altered.result(TIMEOUT_S)


def write_round(address: str, number: int) -> None:
    """Write to every topic; a second round overwrites what the first has left, and ends what it left open."""
    rng = Random(number)
    for topic in ("plain-L", "plain-B", "packed"):
        for partition in range(PARTITIONS[topic]):
            _write_keys(address, rng, topic, partition)
    _write_stamped(address, rng)
    _write_large(address, rng)
    _write_idle(address, number)
    _write_offsets(address, rng, number)
    for topic in ("txn-L", "txn-B"):
        _write_transactions(address, rng, topic, number)


def _write_keys(address: str, rng: Random, topic: str, partition: int) -> None:
    for turn in range(6):
        settings = {"compression.type": _CODECS[turn % len(_CODECS)], "linger.ms": 2, "batch.num.messages": 20}
        producer = Producer({"bootstrap.servers": address, "enable.idempotence": turn % 3 == 1, **settings})
        for count in range(400):
            key = f"key-{int(rng.expovariate(0.02))}"
            value = None if rng.random() < 0.1 else rng.randbytes(rng.randint(0, 30)) * 3
            headers = [("turn", str(turn)), ("again", None)] if count % 7 == 0 else None
            timestamp = _NOW_MS + rng.randint(-100_000, 100_000)
            producer.produce(topic, key=key, value=value, partition=partition, headers=headers, timestamp=timestamp)
        _all_sent(producer)


def _write_stamped(address: str, rng: Random) -> None:
    producer = Producer(
        {"bootstrap.servers": address, "enable.idempotence": True, "batch.num.messages": 10, "compression.type": "lz4"}
    )
    for _ in range(1_500):
        value = None if rng.random() < 0.1 else rng.randbytes(40)
        producer.produce("stamped", key=f"{rng.randint(0, 200)}", value=value)
    _all_sent(producer)


def _write_large(address: str, rng: Random) -> None:
    for codec in ("none", "gzip"):
        producer = Producer({"bootstrap.servers": address, "compression.type": codec, "linger.ms": 50})
        for _ in range(10):
            producer.produce("large", key=f"{rng.randint(0, 3)}", value=rng.randbytes(300_000), timestamp=_NOW_MS)
            producer.produce("large", key=f"beside-{rng.randint(0, 5)}", value=rng.randbytes(100), timestamp=_NOW_MS)
        _all_sent(producer)


def _write_idle(address: str, number: int) -> None:
    """Each producer overwrites what the one before it has written."""
    for turn in range(6):
        producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "batch.num.messages": 15})
        for key in range(120):
            producer.produce("idle", key=f"{key}", value=f"{number}-{turn}-" + "v" * 40, timestamp=_NOW_MS + turn)
        _all_sent(producer)


def _write_offsets(address: str, rng: Random, number: int) -> None:
    for turn in range(40):
        consumer = Consumer({"bootstrap.servers": address, "group.id": f"group-{turn % _GROUPS}", "enable.auto.commit": False})
        partitions = rng.sample(range(_WIDE_PARTITIONS), 25)
        commit(consumer, [TopicPartition("wide", each, rng.randint(0, 1 << 40)) for each in partitions])
        consumer.close()
    for turn in range(3):
        member = Consumer(
            {"bootstrap.servers": address, "group.id": "members", "client.id": f"member-{turn}", "auto.offset.reset": "earliest"}
        )
        member.subscribe(["plain-L"])
        member.poll(TIMEOUT_S)
        member.close()
    _write_consumer_group(address)
    admin = AdminClient({"bootstrap.servers": address})
    for deleted in admin.delete_consumer_groups([f"group-{number}"]).values():
        deleted.result(TIMEOUT_S)


def _write_consumer_group(address: str) -> None:
    """Each member gives partitions up to the next one, and then they leave one after the other."""
    members: list[Consumer] = []
    for topics in (["plain-L"], ["^plain-.*"], ["plain-L", "plain-B"]):
        member = Consumer({"bootstrap.servers": address, "group.id": "consumer-group", "group.protocol": "consumer"})
        member.subscribe(topics)
        members.append(member)
        deadline = time.monotonic() + TIMEOUT_S
        while not member.assignment():
            assert time.monotonic() < deadline, topics
            for each in members:
                each.poll(0.05)
    for member in members:
        member.close()


def _write_transactions(address: str, rng: Random, topic: str, number: int) -> None:
    """Three producers whose transactions overlap; the last one's last has no end, and is aborted by the next round's."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": f"of-{topic}", "enable.auto.commit": False})
    metadata = consumer.consumer_group_metadata()
    producers = []
    for name in range(3):
        settings = {"transaction.timeout.ms": 900_000, "linger.ms": 1, "batch.num.messages": 5, "compression.type": _CODECS[name]}
        producers.append(Producer({"bootstrap.servers": address, "transactional.id": f"{topic}-{name}", **settings}))
        producers[-1].init_transactions(TIMEOUT_S)
    for turn in range(16):
        for producer in producers:
            producer.begin_transaction()
        for _ in range(rng.randint(1, 4)):
            for producer in producers:
                for _ in range(rng.randint(0, 8)):
                    key, value = f"{rng.randint(0, 40)}", None if rng.random() < 0.15 else rng.randbytes(60)
                    producer.produce(topic, key=key, value=value, partition=rng.randint(0, 1), timestamp=_NOW_MS + turn)
                _all_sent(producer)
        for producer in producers:
            offsets = [TopicPartition("wide", rng.randint(0, _WIDE_PARTITIONS - 1), turn)]
            producer.send_offsets_to_transaction(offsets, metadata, TIMEOUT_S)
            if rng.random() < 0.6:
                producer.commit_transaction(TIMEOUT_S)
            else:
                producer.abort_transaction(TIMEOUT_S)
    # Behind the last open one there is more that could be compacted, and must not be.
    producers[2].begin_transaction()
    producers[2].produce(topic, key="open", value=f"{number}", partition=0)
    producers[2].send_offsets_to_transaction([TopicPartition("wide", 0, 7)], metadata, TIMEOUT_S)
    _all_sent(producers[2])
    for turn in range(15):
        producers[0].begin_transaction()
        for key in range(30):
            producers[0].produce(topic, key=f"{key}", value=f"{turn}" * 30, partition=key % 2, timestamp=_NOW_MS)
        producers[0].commit_transaction(TIMEOUT_S)
    consumer.close()


def _all_sent(producer: Producer) -> None:
    if producer.flush(TIMEOUT_S):
        raise TimeoutError("not everything could be sent")


def committed_offsets(address: str) -> dict[str, dict[int, int]]:
    """What Kafka's coordinator says that all groups have committed for ``wide``: group -> partition -> offset."""
    admin = AdminClient({"bootstrap.servers": address})
    names = sorted(listing.group_id for listing in admin.list_consumer_groups().result(TIMEOUT_S).valid)
    found = {}
    for name in names:
        (answer,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)]).values()
        partitions = answer.result(TIMEOUT_S).topic_partitions
        found[name] = {each.partition: each.offset for each in partitions if each.topic == "wide"}
    return found
