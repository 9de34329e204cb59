"""A random history of groups of each kind and of transactions, from a seed, with librdkafka's clients; it ends quiescent.

Consumers join, leave, and return as static members. They commit offsets of their assigned partitions; so do some that assign
partitions to themselves. Groups are deleted. Producers commit and abort transactions, some with the offsets of groups; some
transactions stay open.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, Self

from confluent_kafka import Consumer, ConsumerGroupState, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.campaigns.kafka_tools.kafka_broker import commit, until
from tests.campaigns.pipeline_differential.shares import PATIENT, SharingLife
from tests.campaigns.pipeline_differential.streams import StreamsLife
from tests.share_consumers import TOPIC as SHARED_TOPIC

_TIMEOUT_S = 30.0
_POLL_S = 0.02
_QUIET_S = 1.0
_TOPICS = {"orders": 4, "payments": 2, "audit": 1, SHARED_TOPIC: 2}
_GROUPS = ("billing", "search", "grüße", "archive")
_BY_HAND = ("backfill", "replay", "old-tool")
_MOST_MEMBERS = 4
_OPEN = 2
_METADATA = ("", "naïve")


class _Member(NamedTuple):
    consumer: Consumer
    static_id: str | None


class Life:
    """The clients, closed at the end of the ``with``; until then they stay connected."""

    def __init__(self, address: str, seed: int) -> None:
        self._address = address
        self._random = random.Random(seed)
        self._sharing: SharingLife | None = None
        self._streams = StreamsLife(address, self._random)
        self._settings = {"bootstrap.servers": address, "log_level": 0}
        self._admin = AdminClient(dict(self._settings))
        self._members: dict[str, list[_Member]] = {group: [] for group in _GROUPS}
        self._by_hand: dict[str, Consumer] = {}
        self._producers: dict[str, Producer] = {}
        self._named = 0
        self._actions: dict[Callable[[], None], int] = {
            self._join: 4,
            self._leave: 2,
            self._return: 1,
            self._commit: 8,
            self._commit_by_hand: 4,
            self._delete: 1,
            self._transaction: 8,
            self._share: 6,
            self._streams.step: 3,
        }

    def live(self, steps: int, *, is_first: bool = True) -> None:
        """Make this many steps, then wait until all clients are idle."""
        if is_first:
            self._create()
        for _ in range(steps):
            [action] = self._random.choices(list(self._actions), list(self._actions.values()))
            action()
            self._poll()
        for number in range(_OPEN):
            self._open(f"hanging-{number}")
        self._settle()

    def _share(self) -> None:
        if self._sharing is None:
            self._sharing = SharingLife(self._address, self._random)
            self._sharing.begin()
        self._sharing.step()

    def _create(self) -> None:
        created = self._admin.create_topics([NewTopic(name, count, 1) for name, count in _TOPICS.items()])
        for future in created.values():
            future.result(_TIMEOUT_S)
        for topic, count in _TOPICS.items():
            self._produce(topic, 20 * count)
        self._share()
        self._streams.step()

    def _produce(self, topic: str, count: int) -> None:
        producer = Producer(dict(self._settings))
        for number in range(count):
            producer.produce(topic, str(number), partition=number % _TOPICS[topic])
        assert producer.flush(_TIMEOUT_S) == 0

    def _consumer(self, group: str, static_id: str | None = None) -> Consumer:
        strategy = "cooperative-sticky" if group == "search" else "range,roundrobin"
        settings = {"group.id": group, "client.id": f"{group}-{self._named % 3}", "enable.auto.commit": False}
        if static_id:
            settings["group.instance.id"] = static_id
        consumer = Consumer({**self._settings, **settings, **PATIENT, "partition.assignment.strategy": strategy})
        consumer.subscribe(["orders", "audit"] if group == "billing" else ["orders"])
        return consumer

    def _join(self) -> None:
        group = self._random.choice(_GROUPS)
        if len(self._members[group]) < _MOST_MEMBERS:
            self._named += 1
            static_id = f"{group}-{self._named}" if group == "billing" else None
            self._members[group].append(_Member(self._consumer(group, static_id), static_id))

    def _leave(self) -> None:
        """One that may leave: the static ones would be waited for."""
        group = self._random.choice(_GROUPS)
        if group != "billing" and self._members[group]:
            self._members[group].pop(self._random.randrange(len(self._members[group]))).consumer.close()

    def _return(self) -> None:
        """A static member's process ends, and another begins in its place."""
        members = self._members["billing"]
        if members:
            before = members.pop(0)
            before.consumer.close()
            members.append(_Member(self._consumer("billing", before.static_id), before.static_id))

    def _commit(self) -> None:
        group = self._random.choice(_GROUPS)
        for consumer, _ in self._members[group]:
            offsets = [
                TopicPartition(
                    each.topic, each.partition, self._random.randrange(20), metadata=self._random.choice(["", "naïve"])
                )
                for each in consumer.assignment()
            ]
            # A rebalance may be under way.
            with suppress(KafkaException):
                if offsets:
                    consumer.commit(offsets=offsets, asynchronous=False)

    def _commit_by_hand(self) -> None:
        group = self._random.choice(_BY_HAND)
        if group not in self._by_hand:
            self._by_hand[group] = Consumer({**self._settings, "group.id": group, "enable.auto.commit": False})
        topic = self._random.choice(list(_TOPICS))
        place = TopicPartition(topic, self._random.randrange(_TOPICS[topic]), self._random.randrange(20))
        commit(self._by_hand[group], [place])

    def _delete(self) -> None:
        group = self._random.choice(_BY_HAND)
        if group in self._by_hand:
            self._by_hand.pop(group).close()
            for future in self._admin.delete_consumer_groups([group]).values():
                future.result(_TIMEOUT_S)

    def _producer(self, transactional_id: str) -> Producer:
        if transactional_id not in self._producers:
            producer = Producer({**self._settings, "transactional.id": transactional_id, "transaction.timeout.ms": 600_000})
            producer.init_transactions(_TIMEOUT_S)
            self._producers[transactional_id] = producer
        return self._producers[transactional_id]

    def _transaction(self) -> None:
        name = f"bank-{self._random.randrange(4)}"
        # Now and then a producer is made anew, and takes a new epoch.
        if self._random.random() < 0.2:
            self._producers.pop(name, None)
        producer = self._producer(name)
        producer.begin_transaction()
        for _ in range(self._random.randrange(1, 4)):
            topic = self._random.choice(list(_TOPICS))
            producer.produce(topic, "in a transaction", partition=self._random.randrange(_TOPICS[topic]))
        if self._random.random() < 0.4:
            with self._group_of(name) as consumer:
                offsets = [TopicPartition("orders", self._random.randrange(4), self._random.randrange(20))]
                producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), _TIMEOUT_S)
        if self._random.random() < 0.3:
            producer.abort_transaction(_TIMEOUT_S)
        else:
            producer.commit_transaction(_TIMEOUT_S)

    @contextmanager
    def _group_of(self, name: str) -> Iterator[Consumer]:
        consumer = Consumer({**self._settings, "group.id": f"{name}-in"})
        yield consumer
        consumer.close()

    def _open(self, name: str) -> None:
        if name in self._producers:
            return
        producer = self._producer(name)
        producer.begin_transaction()
        producer.produce("payments", "never to be read", partition=0)
        assert producer.flush(_TIMEOUT_S) == 0

    def _poll(self) -> None:
        for members in self._members.values():
            for consumer, _ in members:
                consumer.poll(_POLL_S)

    def _settle(self) -> None:
        """Wait until each group's members have their partitions, together all of them, for a while."""
        quiet_since = [time.monotonic()]
        before: list[list[list[tuple[str, int]]]] = []

        def is_quiet() -> bool:
            self._poll()
            now = [
                [sorted((each.topic, each.partition) for each in consumer.assignment()) for consumer, _ in members]
                for members in self._members.values()
            ]
            is_whole = all(
                sum(map(len, assigned)) == (5 if group == "billing" else 4)
                for group, assigned in zip(self._members, now, strict=True)
                if assigned
            )
            if now != before or not is_whole:
                before[:] = now
                quiet_since[0] = time.monotonic()
            return time.monotonic() - quiet_since[0] > _QUIET_S and self._has_everyone()

        until(is_quiet)
        self._streams.settle()

    def _has_everyone(self) -> bool:
        """Whether the coordinator has all members too, and no rebalance under way."""
        described = self._admin.describe_consumer_groups(list(_GROUPS), request_timeout=_TIMEOUT_S)
        groups = {group: future.result(_TIMEOUT_S) for group, future in described.items() if self._members[group]}
        return all(
            group.state == ConsumerGroupState.STABLE and len(group.members) == len(self._members[name])
            for name, group in groups.items()
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error) -> None:
        if self._sharing is not None:
            self._sharing.close()
        self._streams.close()
        for consumer in [*self._by_hand.values(), *(each for members in self._members.values() for each, _ in members)]:
            consumer.close()
