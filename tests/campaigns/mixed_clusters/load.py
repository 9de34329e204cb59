"""The load: producers of every kind, each in a thread, by librdkafka; and what must be there of it at the end."""

import threading
import time
from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer

PARTITIONS = 3
CLIENT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "metadata.recovery.strategy": "none", "log_level": 0}
PLAIN, IDEMPOTENT, TRANSACTED, UNCERTAIN = "plain", "idempotent", "transacted", "uncertain"
_CALL_TIMEOUT_S = 20.0
_A_TRANSACTION = 5


class Writer:
    """Sends numbers to all partitions of a topic until ``stop``; ``acknowledged`` are those that the brokers have taken."""

    def __init__(self, servers: str, topic: str, name: str, a_second: float, **config: object) -> None:
        self.topic, self.name = topic, name
        self.sent = 0
        self.acknowledged: list[int] = []
        # Why it could not go on, if it could not.
        self.fatal = ""
        self._interval_s = 1 / a_second
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, **CLIENT, **config})
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send nothing any more, and wait for what is on its way."""
        self._stopping.set()
        self._thread.join(90)
        self._producer.flush(60)

    def _write(self) -> None:
        try:
            while not self._stopping.wait(self._interval_s):
                self._send(self.sent)
                self.sent += 1
        except KafkaException as error:
            self.fatal = str(error)

    def _send(self, number: int) -> None:
        self._producer.produce(
            self.topic, f"{self.name} {number}".encode(), partition=number % PARTITIONS, on_delivery=self._told
        )
        self._producer.poll(0)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(int(message.value().split()[1]))


class TransactionalWriter(Writer):
    """The same in transactions, of which every third is aborted; ``acknowledged`` are the numbers of those that are committed.

    One whose end is not known begins anew: ``unknown`` has its numbers.
    """

    def __init__(self, servers: str, topic: str, name: str, a_second: float) -> None:
        self.unknown: set[int] = set()
        self.ended = 0
        super().__init__(servers, topic, name, a_second, **{"transactional.id": name, "transaction.timeout.ms": 20_000})

    def _write(self) -> None:
        is_ready = False
        while not self._stopping.wait(self._interval_s):
            numbers = range(self.sent, self.sent + _A_TRANSACTION)
            try:
                if not is_ready:
                    _insist(self._producer.init_transactions)
                    is_ready = True
                self.sent += _A_TRANSACTION
                self._carry_out(numbers)
            except KafkaException as error:
                self.unknown.update(numbers)
                if error.args[0].fatal():
                    self.fatal = str(error)
                    return
                if error.args[0].txn_requires_abort():
                    _insist(self._producer.abort_transaction)

    def _carry_out(self, numbers: range) -> None:
        self._producer.begin_transaction()
        for number in numbers:
            self._send(number)
        self.ended += 1
        if self.ended % 3 == 0:
            # What has not been sent is not aborted by the brokers.
            self._producer.flush(_CALL_TIMEOUT_S)
            _insist(self._producer.abort_transaction)
        else:
            _insist(self._producer.commit_transaction)
            self.acknowledged += numbers

    def _told(self, error: KafkaError | None, message: Message) -> None:
        """Only a commit acknowledges."""


def writers(servers: str, a_second: float) -> list[Writer]:
    """One of each kind."""
    every: list[Writer] = [
        Writer(servers, PLAIN, "plain", a_second, acks="all"),
        # It takes the leader's word, which is not kept when another is elected without having the same.
        Writer(servers, UNCERTAIN, "uncertain", a_second, acks="1"),
        TransactionalWriter(servers, TRANSACTED, "transacted", a_second / _A_TRANSACTION),
        TransactionalWriter(servers, TRANSACTED, "transacted-too", a_second / _A_TRANSACTION),
    ]
    idempotent = [
        Writer(servers, IDEMPOTENT, codec, a_second / 5, **{"enable.idempotence": True, "compression.type": codec})
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    ]
    return every + idempotent


def violations(every: Iterable[Writer], read: Mapping[str, Mapping[int, list[bytes]]]) -> list[str]:
    """What was promised and is not there; ``read`` has the committed values of each topic's partitions by offset."""
    found = []
    for writer in every:
        if writer.fatal:
            found.append(f"{writer.name}: {writer.fatal}")
        if writer.topic == UNCERTAIN:
            continue
        numbers = [
            number
            for values in read[writer.topic].values()
            for name, number in (value.decode().split() for value in values)
            if name == writer.name
        ]
        of_writer = [int(number) for number in numbers]
        lost = set(writer.acknowledged) - set(of_writer)
        if lost:
            found.append(f"{writer.name}: {len(lost)} acknowledged records are lost: {sorted(lost)[:5]}")
        if writer.topic != PLAIN and len(set(of_writer)) < len(of_writer):
            found.append(f"{writer.name}: records are there twice")
        if isinstance(writer, TransactionalWriter):
            surplus = set(of_writer) - set(writer.acknowledged) - writer.unknown
            if surplus:
                found.append(f"{writer.name}: {len(surplus)} records of aborted transactions are read: {sorted(surplus)[:5]}")
        elif writer.topic == IDEMPOTENT:
            found += [
                f"{writer.name}: partition {index} is out of order"
                for index, values in read[writer.topic].items()
                if not _is_ascending([int(value.split()[1]) for value in values if value.split()[0].decode() == writer.name])
            ]
    return found


def _is_ascending(numbers: list[int]) -> bool:
    return numbers == sorted(numbers)


def _insist(call: object) -> None:
    """Call until there is a final answer."""
    while True:
        try:
            return call(_CALL_TIMEOUT_S)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
            time.sleep(0.05)
