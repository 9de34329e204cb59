"""Whatever happens to a shard, what it holds is what its log says, and what it shows is what is committed."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.coordinator.runtime.result import CoordinatorResult, decode_group_record
from odradek.coordinator.runtime.states import ShardState
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.runtime.bed import Bed, put

NAMES = st.sampled_from(["a", "b", "c"])
RECORDS = st.lists(st.builds(put, NAMES, st.none() | st.integers(0, 9)), max_size=4)
ERRORS = st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR]).map(KafkaError)


def replayed(records):
    """The state that records lead to, computed without the runtime."""
    offsets = {}
    for record in records:
        if record.value is None:
            offsets.pop(record.key.topic, None)
        else:
            offsets[record.key.topic] = record.value.offset
    return offsets, len(records)


class ShardMachine(RuleBasedStateMachine):
    """Each operation is numbered; each is answered once, and those that share a fate in the order in which they came."""

    @initialize(max_batch_bytes=st.sampled_from([250, 1_048_588]))
    def start(self, max_batch_bytes):
        self.bed = Bed(max_batch_bytes=max_batch_bytes)
        self.epoch = 0
        self.asked = 0

    @rule(records=RECORDS, atomic=st.booleans())
    def write(self, records, atomic):
        number, self.asked = self.asked, self.asked + 1
        self.bed.write(*records, response=number, atomic=atomic)

    @rule()
    def turn(self):
        self.bed.run()

    @rule(errors=st.lists(ERRORS | st.tuples(ERRORS, st.just(True)), min_size=1, max_size=2))
    def fail_appends(self, errors):
        self.bed.log.failures.extend(errors)

    @rule(data=st.data())
    def hold_back(self, data):
        log = self.bed.log
        log.held_back = data.draw(st.booleans(), label="held back")
        log.release(data.draw(st.integers(log.high_watermark, log.log_end_offset), label="high watermark"))

    @rule(resigns=st.booleans())
    def migrate(self, resigns):
        self.epoch += 1
        if resigns:
            self.bed.runtime.unload(0, self.epoch)
        self.bed.runtime.start_loading(0, self.epoch)

    @rule(delay_ms=st.integers(0, 600))
    def deadline(self, delay_ms):
        if self.is_active():
            self.bed.shard.context.schedule("key", delay_ms, lambda: CoordinatorResult([put("expired", 1)], None))
        self.bed.clock.advance(300)

    def is_active(self):
        return self.bed.runtime.states() == {0: ShardState.ACTIVE}

    def log_records(self, below):
        return [decode_group_record(key, value) for offset, key, value in self.bed.log.records() if offset < below]

    @invariant()
    def what_is_shown_is_what_is_committed(self):
        if self.is_active():
            assert self.bed.committed() == replayed(self.log_records(self.bed.log.high_watermark))

    @invariant()
    def each_operation_is_answered_at_most_once(self):
        successes = [answer for answer in self.bed.answers if not isinstance(answer, ErrorCode)]
        assert len(self.bed.answers) <= self.asked
        assert successes == sorted(set(successes))

    @rule()
    def settle(self):
        """Once all is appended, the live state is the log's, and once all is committed, nobody waits."""
        self.bed.log.failures.clear()
        self.turn()
        assert self.is_active()
        log = self.bed.log
        assert self.bed.shard.state() == replayed(self.log_records(log.log_end_offset))
        log.release()
        assert len(self.bed.answers) == self.asked
        assert len(self.bed.shard.context.snapshots) == 0
        fresh = Bed(load=False)
        fresh.logs.logs[0] = log
        listener = log.on_high_watermark
        fresh.runtime.start_loading(0, 0)
        fresh.run()
        log.on_high_watermark = listener
        assert fresh.shard.state() == self.bed.shard.state()

    def teardown(self):
        if hasattr(self, "bed"):
            self.settle()


TestShard = ShardMachine.TestCase
TestShard.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
