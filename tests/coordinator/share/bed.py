"""A shard of share partitions in a real runtime, on a log in memory, under a virtual clock."""

from uuid import UUID

from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.coordinator.share.share_shard import ShareCoordinatorConfig, ShareShard, decode_share_state_record
from odradek.coordinator.share.state import SharePartitionKey, StateBatch
from odradek.protocol.errors import KafkaError
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.coordinator.memory_logs import MemoryLogs

TOPIC_ID = UUID(int=7)
KEY = SharePartitionKey("g", TOPIC_ID, 0)


class Bed:
    """``topics`` has the partitions of each topic; ``pruned`` the offsets below which records were to be removed."""

    def __init__(self, **config):
        self.clock = VirtualClock()
        self.timer = Timer(self.clock)
        self.logs = MemoryLogs()
        self.log = self.logs.logs[0]
        self.config = ShareCoordinatorConfig(**config)
        self.topics = {TOPIC_ID: 4}
        self.pruned = []
        self.faults = []
        self.start()

    def start(self):
        """Load what the log has."""
        self.runtime = CoordinatorRuntime(
            "share",
            self.logs,
            self._make_shard,
            decode_share_state_record,
            self.timer,
            on_fault=lambda what, error: self.faults.append((what, error)),
        )
        self.runtime.start_loading(0, 7)
        self.logs.run()

    def reload(self):
        """Forget everything but the log. Return the state before and after."""
        before = self.state()
        self.runtime.unload(0)
        self.start()
        return before, self.state()

    def _make_shard(self, _partition, context):
        self.shard = ShareShard(context, self.config, self, lambda _, offset: self.pruned.append(offset))
        return self.shard

    def partition_count(self, topic_id):
        return self.topics.get(topic_id, 0)

    def state(self):
        return dict(self.shard.partitions.items())

    def ask(self, operation):
        """The answer, an error as its code; None while it waits, and for success."""
        answers = []
        self.runtime.write(0, operation).when_done(answers.append)
        self.logs.run()
        answer = answers[0] if answers else "waiting"
        return answer.code if isinstance(answer, KafkaError) else answer

    def initialize(self, key=KEY, epoch=0, start=-1):
        return self.ask(lambda shard: shard.initialize(key, epoch, start))

    def read(self, key=KEY, leader=0):
        return self.ask(lambda shard: shard.read(key, leader))

    def write(self, *batches, key=KEY, epoch=0, leader=0, start=0, complete=0):
        batches = [StateBatch(*each) for each in batches]
        return self.ask(lambda shard: shard.write(key, epoch, leader, start, complete, batches))

    def delete(self, key=KEY):
        return self.ask(lambda shard: shard.delete(key))

    def summary(self, key=KEY):
        return self.ask(lambda shard: shard.read_summary(key))

    def records(self):
        """All records in the log, in order."""
        return [decode_share_state_record(key, value) for _, key, value in self.log.records()]

    def advance(self, duration_ms):
        """Let time pass, and what it brings about."""
        self.clock.advance(duration_ms)
        self.logs.run()
