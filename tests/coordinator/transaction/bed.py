"""A shard of transactional ids in a real runtime, on a log in memory, under a virtual clock; markers go into a list."""

from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transaction_shard import TransactionShard, decode_transaction_record
from odradek.coordinator.transaction.transactions import ProducerIdentity, TransactionConfig
from odradek.protocol.errors import KafkaError
from odradek.timing.clock import VirtualClock
from odradek.timing.reply import Reply
from odradek.timing.timer import Timer
from tests.coordinator.memory_logs import MemoryLogs

ID = "transfers"
TIMEOUT_MS = 60_000
NOBODY = ProducerIdentity(-1, -1)
A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)


class Reports:
    """The lines that would be in the broker's log."""

    def __init__(self):
        self.lines = []

    def info(self, event, **fields):
        self.lines.append((event, fields))

    warn = info


class Bed:
    """``answers`` are what operations were answered with, errors as their codes; ``markers`` what was written, in order.

    ``refusals`` has the errors of partitions that cannot be written to, and ``remote`` those whose markers take their time: each
    gets a Reply in ``under_way``.
    """

    def __init__(self, logs=None, **config):
        self.clock = VirtualClock()
        self.timer = Timer(self.clock)
        self.logs = logs or MemoryLogs()
        self.log = self.logs.logs[0]
        self.reports = Reports()
        self.answers = []
        self.markers = []
        self.refusals = {}
        self.remote = set()
        self.under_way = {}
        self.faults = []
        self._config = TransactionConfig(**config)
        self._next_producer_id = 100
        self.start()

    def start(self):
        """Load what the log has."""
        self.runtime = CoordinatorRuntime(
            "transaction",
            self.logs,
            self._make_shard,
            decode_transaction_record,
            self.timer,
            on_fault=lambda what, error: self.faults.append((what, error)),
        )
        self.runtime.start_loading(0, 7)
        self.logs.run()

    def crash(self, high_watermark=None):
        """Forget all that is not in the log, and load again, under the same coordinator epoch.

        The log is committed up to ``high_watermark``, which then stands still, or to its end.
        """
        for partition in self.runtime.partitions():
            self.runtime.unload(partition)
        self.logs = _revived(self.logs)
        self.log = self.logs.logs[0]
        if high_watermark is not None:
            self.log.held_back = True
            self.log.release(high_watermark)
        self.start()

    def _make_shard(self, _partition, context):
        self.shard = TransactionShard(
            context, self._config, new_producer_id=self._new_producer_id, marker_writer=self, reports=self.reports
        )
        return self.shard

    def _new_producer_id(self):
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def write_marker(self, topic, partition, marker):
        code = self.refusals.get((topic, partition))
        if code is not None:
            raise KafkaError(code)
        assert marker.coordinator_epoch == 7
        result = "commit" if marker.is_commit else "abort"
        self.markers.append(((topic, partition), marker.producer_id, marker.producer_epoch, result))
        if (topic, partition) not in self.remote:
            return None
        reply = self.under_way[topic, partition] = Reply()
        return reply

    def ask(self, operation, *, run=True):
        """The answer to an operation; None while it waits."""
        answers = []
        self.runtime.write(0, operation).when_done(answers.append)
        if run:
            self.logs.run()
        answer = answers[0] if answers else None
        return answer.code if isinstance(answer, KafkaError) else answer

    def init(self, expected=NOBODY, transactional_id=ID, timeout_ms=TIMEOUT_MS, **options):
        expected = ProducerIdentity(*expected)
        return self.ask(lambda shard: shard.init_producer_id(transactional_id, timeout_ms, expected), **options)

    def add(self, producer, *partitions, version=0, transactional_id=ID, **options):
        producer, asked = ProducerIdentity(*producer), frozenset(partitions)
        return self.ask(lambda shard: shard.add_partitions(transactional_id, producer, asked, version), **options)

    def end(self, producer, commit, *, version=0, transactional_id=ID, **options):
        producer = ProducerIdentity(*producer)
        return self.ask(lambda shard: shard.end_txn(transactional_id, producer, commit=commit, client_version=version), **options)

    def commit(self, producer, **options):
        return self.end(producer, True, **options)

    def abort(self, producer, **options):
        return self.end(producer, False, **options)

    def verify(self, producer, *partitions, transactional_id=ID):
        producer, asked = ProducerIdentity(*producer), frozenset(partitions)
        try:
            return self.runtime.read(0, lambda shard, offset: shard.verify_partitions(transactional_id, producer, asked, offset))
        except KafkaError as error:
            return error.code

    def advance(self, duration_ms):
        """Let time pass, and what it brings about."""
        self.clock.advance(duration_ms)
        self.logs.run()

    def value(self, transactional_id=ID):
        return self.shard.transactions.by_id.get(transactional_id)

    def state(self, transactional_id=ID):
        return TransactionState(self.value(transactional_id).status)

    def records(self):
        """(transactional id, value) of all in the log, in order."""
        decoded = [decode_transaction_record(key, value) for _, key, value in self.log.records()]
        return [(record.key.transactional_id, record.value) for record in decoded]

    def written_states(self):
        return [None if value is None else TransactionState(value.status).name for _, value in self.records()]

    def persistent(self):
        """The state as a load would find it."""
        return {each: value._replace(last_producer_epoch=-1) for each, value in self.shard.transactions.by_id.items()}


def _revived(logs):
    """Logs with the same bytes, whose event loop has forgotten everything."""
    revived = MemoryLogs(len(logs.logs))
    for old, new in zip(logs.logs, revived.logs, strict=True):
        for batch in old.batches:
            new.append_batch(batch)
        new.release()
    return revived
