"""Whatever happens, a fetch within a session tells, and is woken by, what it would be if it read all partitions each time."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.broker.replica.delayed_fetch import FetchRead
from odradek.broker.replica.fetch_partitions import FetchPartitions
from odradek.broker.replica.follower_fetch import FollowerFetchRead
from odradek.coordinator.runtime.result import EndTxnMarker
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types import fetch
from tests.broker.replica.many_partitions import MAX_BYTES, LeadingBroker, Reader
from tests.broker.replica.replication_bed import FIRST, LEADER, SECOND, TOPIC_ID
from tests.broker.replica.test_read_committed import NOW_MS, transactional_batch

COUNT = 3
INDEXES = st.integers(0, COUNT - 1)
NAMES = st.sampled_from(("first", "second", "consumer", "committed"))
REPLICAS = (LEADER, FIRST, SECOND)


class Sessions(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.broker = LeadingBroker(COUNT, min_in_sync=2)
        self.readers = {
            "first": Reader(self.broker, FIRST),
            "second": Reader(self.broker, SECOND),
            "consumer": Reader(self.broker),
            "committed": Reader(self.broker, committed=True),
        }
        self.is_waiting = set()
        self.sequences = dict.fromkeys(range(COUNT), 0)
        self.partition_epoch = 1

    @initialize()
    def begin(self):
        for reader in self.readers.values():
            for _ in range(2):
                reader.fetch()

    def found(self, reader, index):
        """What a reader would find that begins anew where this one is."""
        asked = fetch.FetchPartition(
            partition=index,
            fetch_offset=reader.offsets[index],
            partition_max_bytes=MAX_BYTES,
            current_leader_epoch=reader.epochs[index],
        )
        wanted = FetchPartitions()
        wanted.ask([fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[asked])], topic_keys_are_ids=True)
        options = {"min_bytes": 1, "max_bytes": MAX_BYTES}
        find = self.broker.partitions.find_fetched
        if reader.node_id >= 0:
            read = FollowerFetchRead(wanted, find, **options, node_id=reader.node_id, broker_epoch=reader.broker_epoch, now_ms=0)
            read._has_noted = True
        else:
            read = FetchRead(wanted, find, **options, committed_only=reader.committed, any_replica=True)
        [(_, data)], _ = read.read()
        return data

    @rule(name=NAMES)
    def fetch(self, name):
        if name not in self.is_waiting:
            self.check(self.readers[name])

    @rule(name=NAMES)
    def wait(self, name):
        if name not in self.is_waiting:
            self.readers[name].wait()
            self.is_waiting.add(name)

    def check(self, reader):
        told = reader.fetch()
        self.take_errors(reader, told)
        for index in set(range(COUNT)) - set(told) - reader.left_out:
            data = self.found(reader, index)
            assert not data.error_code
            assert not data.records
            marks = data.high_watermark, data.log_start_offset
            assert (reader.high_watermarks.get(index), reader.start_offsets.get(index)) == marks

    def take_errors(self, reader, told):
        for index, data in told.items():
            if data.error_code:
                # It does not believe what it was told before.
                reader.high_watermarks.pop(index, None)
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                reader.offsets[index] = self.broker.all[index].log.log_start_offset
                reader.named.add(index)

    @invariant()
    def those_that_wait_have_nothing_to_get(self):
        for name in sorted(self.is_waiting):
            reader = self.readers[name]
            if reader.waiting is not None:
                self.is_waiting.remove(name)
                self.take_errors(reader, reader.waiting)
                continue
            for index in set(range(COUNT)) - reader.left_out:
                data = self.found(reader, index)
                assert not data.error_code
                assert not data.records

    # ---------------------------------------------------------------------------------------------------- what may happen

    @rule(index=INDEXES)
    def append(self, index):
        if self.broker.all[index].leader is not None:
            self.broker.append(index)

    @rule(index=INDEXES)
    def write_in_a_transaction(self, index):
        if self.broker.all[index].leader is not None:
            self.broker.all[index].append(transactional_batch(self.sequences[index]), NOW_MS, True)
            self.sequences[index] += 1

    @rule(index=INDEXES, is_commit=st.booleans())
    def end_the_transaction(self, index, is_commit):
        partition = self.broker.all[index]
        if partition.leader is not None and partition.log.first_unstable_offset is not None:
            partition.append_marker(EndTxnMarker(7, 0, 0, is_commit), NOW_MS)

    @rule(index=INDEXES)
    def delete_records(self, index):
        partition = self.broker.all[index]
        partition.log.delete_records_before(partition.high_watermark)

    @rule(index=INDEXES, name=st.sampled_from(("first", "second")))
    def take_one_out_of_the_isr(self, index, name):
        followers = self.broker.all[index].leader and self.broker.all[index].leader.followers
        if followers:
            self.partition_epoch += 1
            followers.committed(REPLICAS, set(REPLICAS) - {self.readers[name].node_id}, self.partition_epoch)

    @rule(is_accepted=st.booleans())
    def answer_proposals(self, is_accepted):
        asked, self.broker.asked = self.broker.asked, []
        for proposal, reply in asked:
            if is_accepted:
                self.partition_epoch += 1
                isr = frozenset(node_id for node_id, _ in proposal.isr)
                followers = self.broker.all[proposal.partition].leader and self.broker.all[proposal.partition].leader.followers
                if followers:
                    followers.committed(REPLICAS, isr, self.partition_epoch)
            else:
                reply.complete(KafkaError(ErrorCode.INELIGIBLE_REPLICA, "no"))

    @rule(duration_ms=st.sampled_from((1, 400, 40_000)))
    def pass_time(self, duration_ms):
        self.broker.clock.advance(duration_ms)
        for partition in self.broker.all:
            if partition.leader is not None:
                partition.leader.followers.shrink(partition.log.log_end_offset)

    @rule(count=st.integers(1, 3))
    def ask_for_in_sync_replicas(self, count):
        self.broker.min_in_sync = count

    @rule(index=INDEXES, leads=st.booleans())
    def elect(self, index, leads):
        partition = self.broker.all[index]
        epoch = partition.leader_epoch + 1
        if leads:
            self.partition_epoch = 1
            self.broker.lead(partition, epoch, REPLICAS)
            partition.replication_changed()
        else:
            partition.become_follower(SECOND, epoch)

    @rule(index=INDEXES, name=NAMES)
    def learn_of_the_epoch(self, index, name):
        if name not in self.is_waiting:
            reader = self.readers[name]
            if reader.epochs[index] != self.broker.all[index].leader_epoch:
                reader.epochs[index] = self.broker.all[index].leader_epoch
                if index not in reader.left_out:
                    reader.named.add(index)

    @rule(name=st.sampled_from(("first", "second")))
    def register_anew(self, name):
        if name not in self.is_waiting:
            reader = self.readers[name]
            reader.broker_epoch += 1
            self.broker.epochs[reader.node_id] = reader.broker_epoch

    @rule(name=st.sampled_from(("first", "second")))
    def come_and_go(self, name):
        node_id = self.readers[name].node_id
        if self.broker.epochs.pop(node_id, None) is None:
            self.broker.epochs[node_id] = self.readers[name].broker_epoch

    @rule(name=NAMES)
    def begin_a_new_session(self, name):
        if name not in self.is_waiting:
            self.readers[name].begin_anew()

    @rule(index=INDEXES, name=st.sampled_from(("consumer", "committed")), offset=st.integers(0, 9))
    def seek(self, index, name, offset):
        if name not in self.is_waiting:
            log = self.broker.all[index].log
            reader = self.readers[name]
            reader.offsets[index] = min(max(offset, log.log_start_offset), log.log_end_offset)
            if index not in reader.left_out:
                reader.named.add(index)

    @rule(index=st.integers(1, COUNT - 1), name=NAMES)
    def leave_out_or_take_in(self, index, name):
        if name not in self.is_waiting:
            reader = self.readers[name]
            if index in reader.left_out:
                reader.take_in(index)
            else:
                reader.leave_out(index)


Sessions.TestCase.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestSessions = Sessions.TestCase
