"""A runtime on logs in memory under a virtual clock, hosting shards that keep offsets and write down what happens to them."""

from odradek.coordinator.runtime.ports import WriteOrder
from odradek.coordinator.runtime.result import CoordinatorRecord, CoordinatorResult, decode_group_record
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.coordinator.runtime.timeline import TimelineDict, TimelineValue
from odradek.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue
from odradek.protocol.errors import KafkaError
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.coordinator.memory_logs import MemoryLogs

GROUP = "group"


def put(name, offset=1, group=GROUP):
    """The record that sets ``name`` to ``offset``, or removes it for None."""
    value = None if offset is None else OffsetCommitValue(offset)
    return CoordinatorRecord(OffsetCommitKey(group, name, 0), value)


def write(*records, response="ok", **hooks):
    """An operation that decides on ``records`` whatever the state."""
    return lambda _: CoordinatorResult(records, response, **hooks)


class Shard:
    """``offsets`` by name, and ``replayed``, how many records; ``events`` is of all that happens and is never rolled back."""

    write_order = WriteOrder.REPLAY_THEN_APPEND

    def __init__(self, partition, context):
        self.partition = partition
        self.context = context
        self.offsets = TimelineDict(context.snapshots)
        self.replayed = TimelineValue(context.snapshots, 0)
        self.events = []
        # Replies that are still held when the shard is let go, with their responses.
        self.held = []

    def replay(self, record, offset):
        if record.key.topic == "poison":
            raise ZeroDivisionError("a record that cannot be replayed")
        self.events.append(offset)
        self.replayed.set(self.replayed.get() + 1)
        if record.value is None:
            self.offsets.pop(record.key.topic)
        else:
            self.offsets[record.key.topic] = record.value.offset

    def on_loaded(self, now_ms):
        self.events.append("loaded")

    def on_unloaded(self):
        self.events.append("unloaded")
        return self.held

    def state(self):
        return dict(self.offsets.items()), self.replayed.get()

    def state_at(self, offset):
        return dict(self.offsets.items_at(offset)), self.replayed.get_at(offset)


class AppendingShard(Shard):
    """The same, with the other order of writing."""

    write_order = WriteOrder.APPEND_THEN_REPLAY


class Bed:
    """``answers`` are what operations were answered with, errors as their codes, in order."""

    def __init__(self, partition_count=1, make_shard=None, load=True, shard_class=Shard, runtime_options=None, **log_options):
        self.clock = VirtualClock()
        self.timer = Timer(self.clock)
        self.logs = MemoryLogs(partition_count, **log_options)
        self.log = self.logs.logs[0]
        self.shards = []
        self._shard_class = shard_class
        self.faults = []
        self.answers = []
        self.runtime = CoordinatorRuntime(
            "test",
            self.logs,
            make_shard or self._make_shard,
            decode_group_record,
            self.timer,
            on_fault=lambda what, error: self.faults.append((what, error)),
            **(runtime_options or {}),
        )
        if load:
            for partition in range(partition_count):
                self.runtime.start_loading(partition, 0)
            self.logs.run()

    def _make_shard(self, partition, context):
        self.shards.append(self._shard_class(partition, context))
        return self.shards[-1]

    @property
    def shard(self):
        """The one made last."""
        return self.shards[-1]

    def respond(self, outcome):
        self.answers.append(outcome.code if isinstance(outcome, KafkaError) else outcome)

    def write(self, *records, target=0, **options):
        self.runtime.write(target, write(*records, **options)).when_done(self.respond)

    def run(self):
        self.logs.run()

    def committed(self):
        return self.runtime.read(0, lambda shard, offset: shard.state_at(offset))
