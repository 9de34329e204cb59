"""The clients, each in a thread, by librdkafka: a feeder of orders, tellers that carry them out, and producers in a hurry.

What must be in the topics at the end, whoever was killed.

    orders    a number each; a partition has every third one, in order, each once
    ledger    for each order a debit and a credit, in two partitions, written in one transaction with the order's offset
    hurried   for each transaction of its producers the same record in every partition

Pure: what was read comes in as lists.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

PARTITIONS = 3
DEBIT, CREDIT = "debit", "credit"


class Violation(Exception):
    """A violated invariant."""


def order_partition(number: int) -> int:
    """The partition of an order."""
    return number % PARTITIONS


def entries_of(number: int) -> list[tuple[int, bytes]]:
    """(partition, value) of an order's entries in the ledger: in two partitions."""
    return [
        (number % PARTITIONS, f"{number} {DEBIT}".encode()),
        ((number + 1) % PARTITIONS, f"{number} {CREDIT}".encode()),
    ]


def check_orders(read: Mapping[int, Sequence[int]], acknowledged: Iterable[int], sent: int) -> None:
    """``read`` has the numbers in each partition by offset. Raises Violation."""
    for partition, numbers in read.items():
        if list(numbers) != sorted(set(numbers)):
            raise Violation(f"orders-{partition} has orders twice, or in another order than they were sent")
        strangers = [number for number in numbers if order_partition(number) != partition or number >= sent]
        if strangers:
            raise Violation(f"orders-{partition} has what was not sent there: {strangers[:5]}")
    there = {number for numbers in read.values() for number in numbers}
    lost = sorted(set(acknowledged) - there)
    if lost:
        raise Violation(f"{len(lost)} acknowledged orders are lost: {lost[:5]}")


def check_ledger(read: Mapping[int, Sequence[bytes]], orders: Iterable[int]) -> None:
    """``read`` has the committed entries of each partition. Raises Violation."""
    found = Counter((partition, value) for partition, values in read.items() for value in values)
    wanted = Counter(entry for number in orders for entry in entries_of(number))
    missing, surplus = wanted - found, found - wanted
    if missing:
        raise Violation(f"{missing.total()} entries are missing: {sorted(missing)[:5]}")
    if surplus:
        raise Violation(f"{surplus.total()} entries are there twice, or of no order: {sorted(surplus)[:5]}")


def check_hurried(read: Mapping[int, Sequence[bytes]], fates: Mapping[bytes, bool | None]) -> None:
    """``read`` has the committed records of each partition, ``fates`` whether each was committed. Raises Violation."""
    found = {partition: Counter(values) for partition, values in read.items()}
    strangers = {value for values in found.values() for value in values} - fates.keys()
    if strangers:
        raise Violation(f"records that nobody has written: {sorted(strangers)[:5]}")
    for value, is_committed in fates.items():
        counts = {values[value] for values in found.values()}
        wanted = ({1}, {0}) if is_committed is None else ({int(is_committed)},)
        if counts not in wanted:
            told = {True: "committed", False: "aborted", None: "of an unknown fate"}[is_committed]
            raise Violation(f"transaction {value.decode()}, {told}, is torn, lost, or there twice: {sorted(counts)}")


ORDERS, LEDGER, HURRIED, GROUP = "orders", "ledger", "hurried", "tellers"
CALL_TIMEOUT_S = 15.0
BATCH = 20
# Clients that look soon whether there is another leader.
CLIENT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "topic.metadata.refresh.interval.ms": 1000,
    "metadata.recovery.rebootstrap.trigger.ms": 5000,
    "socket.timeout.ms": 3000,
    # librdkafka sends a transaction's offsets to a group's coordinator that it has lost the connection to, and waits for one that
    # it does not make as long as nothing else needs it.
    "enable.sparse.connections": False,
    "log_level": 0,
}
PRODUCER = {"request.timeout.ms": 3000, **CLIENT}
# As docs/compatibility.md says. Such a producer is lost when a broker tells of no brokers, since all are fenced: see Transactor.
TRANSACTION_TIMEOUT_S = 10
TRANSACTIONAL = {"transaction.timeout.ms": TRANSACTION_TIMEOUT_S * 1000, "metadata.recovery.strategy": "none", **PRODUCER}
CONSUMER = {
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "session.timeout.ms": 6000,
    "max.poll.interval.ms": 15_000,
    **CLIENT,
}
# Longer than a call of librdkafka's may take.
PATIENCE_S = CALL_TIMEOUT_S + 10
HUNG, IDLE = "hung", "idle"


class Feeder:
    """Sends orders with acks=all until ``stop``; ``acknowledged`` are those that the brokers have taken.

    An idempotent producer finds out by itself if they have lost what they took: ``failure`` is what it says then. It has at most
    ``in_flight`` unanswered requests.
    """

    def __init__(self, servers: str, orders_a_second: float, *, in_flight: int = 5) -> None:
        self.sent = 0
        self.failure = ""
        self.acknowledged: list[int] = []
        # By partition.
        self.counts = [0] * PARTITIONS
        own = {"enable.idempotence": True, "max.in.flight": in_flight, "linger.ms": 2, "error_cb": self._erred}
        self._producer = Producer({"bootstrap.servers": servers, **own, **PRODUCER})
        self._interval_s = 1 / orders_a_second
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._feed, name="feeder", daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """The number of orders whose fate nobody knows."""
        self._stopping.set()
        self._thread.join()
        return self._producer.flush(60)

    def _feed(self) -> None:
        while not self._stopping.wait(self._interval_s):
            number = self.sent
            self.sent += 1
            try:
                self._producer.produce(ORDERS, str(number).encode(), partition=order_partition(number), on_delivery=self._told)
            except KafkaException as error:
                self.failure = self.failure or str(error)
                return
            self._producer.poll(0)

    def _erred(self, error: KafkaError) -> None:
        if error.fatal():
            self.failure = str(error)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            number = int(message.value())
            self.acknowledged.append(number)
            self.counts[order_partition(number)] += 1


class Transactor(ABC):
    """Makes transactions until ``stop``. One that fails begins anew.

    So does one whose call has not come back in its time, or that is not fed: librdkafka has such calls, and consumers that do not
    join their group again. The thread is left alone, fenced.
    """

    def __init__(self, servers: str, name: str) -> None:
        self.committed = 0
        self.reasons: list[str] = []
        self._servers = servers
        self._name = name
        self._begin()

    @abstractmethod
    def _work(self, stopping: threading.Event, producer: Producer) -> None:
        """Make transactions with a producer that is initialised, until ``stopping`` is set. Raises KafkaException."""

    def stop(self) -> None:
        """Wait for the transaction under way."""
        self._stopping.set()
        self._thread.join(PATIENCE_S)

    def begin_anew_if_stuck(self) -> None:
        """To be called now and then."""
        now_s = time.monotonic()
        stuck = HUNG if now_s - self._step_s > PATIENCE_S else IDLE if now_s - self._fed_s > PATIENCE_S else ""
        if stuck:
            self._stopping.set()
            self.reasons.append(stuck)
            self._begin()

    def _begin(self) -> None:
        self._step_s = self._fed_s = time.monotonic()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._live, args=(self._stopping,), name=self._name, daemon=True)
        self._thread.start()

    def _live(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            producer = Producer({"bootstrap.servers": self._servers, "transactional.id": self._name, **TRANSACTIONAL})
            try:
                self._insist(stopping, producer.init_transactions)
                self._work(stopping, producer)
            except KafkaException as error:
                if not stopping.is_set():
                    self.reasons.append(error.args[0].name())

    def _feed(self, stopping: threading.Event) -> None:
        """There was something to do."""
        if stopping is self._stopping:
            self._fed_s = time.monotonic()

    def _insist(self, stopping: threading.Event, call: Callable[[float], None]) -> None:
        """Call until there is a final answer."""
        while True:
            self._step(stopping)
            try:
                return call(CALL_TIMEOUT_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                time.sleep(0.05)

    def _step(self, stopping: threading.Event) -> None:
        if stopping is self._stopping:
            self._step_s = time.monotonic()


class Teller(Transactor):
    """Carries out orders, each in a transaction with its offset."""

    def _work(self, stopping: threading.Event, producer: Producer) -> None:
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": GROUP, **CONSUMER})
        try:
            consumer.subscribe([ORDERS])
            while not stopping.is_set():
                self._carry_out(stopping, consumer, producer)
        finally:
            consumer.close()

    def _carry_out(self, stopping: threading.Event, consumer: Consumer, producer: Producer) -> None:
        messages = [message for message in consumer.consume(BATCH, 0.3) if message.error() is None]
        self._step(stopping)
        if not messages:
            return
        self._feed(stopping)
        try:
            producer.begin_transaction()
            for message in messages:
                for partition, value in entries_of(int(message.value())):
                    producer.produce(LEDGER, value, partition=partition)
            offsets = consumer.position(consumer.assignment())
            metadata = consumer.consumer_group_metadata()
            self._insist(stopping, lambda timeout_s: producer.send_offsets_to_transaction(offsets, metadata, timeout_s))
            self._insist(stopping, producer.commit_transaction)
            if not stopping.is_set():
                self.committed += 1
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._insist(stopping, producer.abort_transaction)
            # What was read is read again.
            raise


class Hurried(Transactor):
    """Begins a transaction as soon as one has ended: the same record in every partition of ``HURRIED``.

    ``fates`` tells of each whether it was committed, None where nobody knows. ``unreasonable`` are the refusals of transactions
    that nobody else can have ended.
    """

    def __init__(self, servers: str, name: str) -> None:
        self.fates: dict[bytes, bool | None] = {}
        self.unreasonable: list[str] = []
        super().__init__(servers, name)

    def _work(self, stopping: threading.Event, producer: Producer) -> None:
        while not stopping.is_set():
            self._feed(stopping)
            self._transact(stopping, producer)

    def _transact(self, stopping: threading.Event, producer: Producer) -> None:
        value = b"%s %d" % (self._name.encode(), len(self.fates))
        self.fates[value] = None
        began_s = time.monotonic()
        try:
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce(HURRIED, value, partition=partition)
            self._insist(stopping, producer.commit_transaction)
            self.fates[value] = True
            self.committed += 1
        except KafkaException as error:
            took_s = time.monotonic() - began_s
            if error.args[0].code() == KafkaError.INVALID_TXN_STATE and took_s < TRANSACTION_TIMEOUT_S and not stopping.is_set():
                self.unreasonable.append(f"{value.decode()} after {took_s:.1f} s: {error}")
            if error.args[0].txn_requires_abort():
                self._insist(stopping, producer.abort_transaction)
                self.fates[value] = False
            raise


def committed_offsets(servers: str, group: str) -> dict[int, int]:
    """What a group has committed of ORDERS, by partition; nothing while its coordinator does not answer."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, **CLIENT})
    try:
        found = consumer.committed([TopicPartition(ORDERS, index) for index in range(PARTITIONS)], 10)
    except KafkaException:
        return {}
    else:
        return {each.partition: each.offset for each in found}
    finally:
        consumer.close()


def read_all(servers: str, topic: str, timeout_s: float = 60, *, is_quiet: bool = False) -> dict[int, list[bytes]]:
    """Every committed value of each partition, by offset. Raises Violation where the end is not reached.

    ``is_quiet``: no broker goes or comes meanwhile, and an error is a violation.
    """
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True, **CONSUMER})
    found: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    ended: set[int] = set()
    deadline = time.monotonic() + timeout_s
    while len(ended) < PARTITIONS:
        if time.monotonic() > deadline:
            raise Violation(f"{topic} is not read to its end within {timeout_s:.0f} s")
        for message in consumer.consume(500, 0.5):
            if message.error() is None:
                found[message.partition()].append(message.value())
                ended.discard(message.partition())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            elif is_quiet:
                raise Violation(f"{topic}-{message.partition()} at {message.offset()}: {message.error()}")
    consumer.close()
    return found
