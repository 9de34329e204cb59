"""Whatever happens to a log with transactions: a restart knows what it knew, and readers of committed records see only those."""

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.record_batch import iter_batches
from odradek.storage.log.log_config import LogConfig
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.support import NOW_MS, append, open_log, read
from tests.storage.transactional import end, send, state_of

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150)
PRODUCERS = st.integers(0, 3)
STEPS = st.one_of(
    st.tuples(st.just("send"), PRODUCERS, st.integers(1, 3)),
    st.tuples(st.just("commit"), PRODUCERS, st.booleans()),
    st.tuples(st.just("abort"), PRODUCERS, st.booleans()),
    st.tuples(st.sampled_from(["plain", "roll", "flush", "stop", "kill"]), st.just(0), st.just(0)),
    st.tuples(st.just("tear"), st.integers(1, 120), st.just(0)),
)


class Model:
    """A log, and for each of its transactions what became of it."""

    def __init__(self):
        self.file_system = MemoryFileSystem()
        self.log = open_log(self.file_system, config=CONFIG)
        # Producer -> (epoch, next sequence).
        self.producers = {}
        # Offset -> (producer, number of its transaction); the offsets of others' records have none.
        self.members = {}
        # (producer, number) -> (commit, the marker's offset).
        self.fates = {}
        self.numbers = dict.fromkeys(range(4), 0)

    def do(self, step, which, extra):
        getattr(self, step)(which, extra)

    def send(self, producer, count):
        epoch, sequence = self.producers.get(producer, (0, 0))
        info = send(self.log, sequence, count=count, producer=producer, epoch=epoch)
        self.producers[producer] = (epoch, sequence + count)
        self.members.update(dict.fromkeys(range(info.first_offset, info.last_offset + 1), (producer, self.numbers[producer])))

    def _end(self, producer, bumps, commit):
        epoch, sequence = self.producers.get(producer, (0, 0))
        if bumps:
            epoch, sequence = epoch + 1, 0
        info = end(self.log, commit=commit, producer=producer, epoch=epoch)
        self.producers[producer] = (epoch, sequence)
        self.fates[producer, self.numbers[producer]] = (commit, info.first_offset)
        self.numbers[producer] += 1

    def commit(self, producer, bumps):
        self._end(producer, bumps, True)

    def abort(self, producer, bumps):
        self._end(producer, bumps, False)

    def plain(self, *_):
        append(self.log)

    def roll(self, *_):
        self.log.roll(NOW_MS)

    def flush(self, *_):
        self.log.flush(NOW_MS)

    def stop(self, *_):
        self._restart(clean=True)

    def kill(self, *_):
        self._restart(clean=False)

    def _restart(self, *, clean):
        before = state_of(self.log)
        recovery_point = self.log.recovery_point
        self.log.close(clean=clean, now_ms=NOW_MS)
        self.log = open_log(self.file_system, config=CONFIG, clean=clean, recovery_point=recovery_point)
        assert state_of(self.log) == before

    def tear(self, size, _):
        """A kill in the middle of an append: the last bytes that were not flushed are gone."""
        active = self.log.segments.active
        if self.log.recovery_point > active.base_offset or not active.size:
            return
        recovery_point = self.log.recovery_point
        self.log.close(clean=False, now_ms=NOW_MS)
        data = self.file_system.files[active.path].data
        del data[max(len(data) - size, 0) :]
        self.log = open_log(self.file_system, config=CONFIG, recovery_point=recovery_point)
        self._forget_from(self.log.log_end_offset)

    def _forget_from(self, offset):
        self.members = {key: value for key, value in self.members.items() if key < offset}
        for key, (_, marker) in list(self.fates.items()):
            if marker >= offset:
                del self.fates[key]
        self.producers = {
            key: (found.epoch, (found.last_sequence + 1) & 0x7FFFFFFF) for key, found in self.log.producers.by_id.items()
        }
        for producer in self.numbers:
            ended = [number for who, number in self.fates if who == producer]
            self.numbers[producer] = max(ended, default=-1) + 1

    def check(self):
        open_from = [offset for offset, member in sorted(self.members.items()) if member not in self.fates]
        assert self.log.first_unstable_offset == (open_from[0] if open_from else None)
        stable = open_from[0] if open_from else self.log.log_end_offset
        aborted = {offset for offset, member in self.members.items() if not self.fates.get(member, (True, 0))[0]}
        assert self._hidden(stable) == {offset for offset in aborted if offset < stable}

    def _hidden(self, stable):
        """The offsets that a reader of committed records leaves out, as Kafka's consumer finds them."""
        hidden, offset = set(), 0
        while offset < stable:
            found = self.log.read(offset, 300, upper_offset=stable, min_one_batch=True)
            waiting = sorted(self.log.aborted_in(found, offset, stable), key=lambda each: each[1])
            active = set()
            for position, header in iter_batches(found.read()):
                while waiting and waiting[0][1] <= header.last_offset:
                    active.add(waiting.pop(0)[0])
                if header.is_control:
                    active.discard(header.producer_id)
                elif header.is_transactional and header.producer_id in active:
                    hidden.update(range(header.base_offset, header.next_offset))
                offset = header.next_offset
                assert position >= 0
        return hidden


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=60))
def test_readers_see_what_was_committed_and_restarts_change_nothing(steps):
    model = Model()
    for step in steps:
        model.do(*step)
    model.check()
    model.kill()
    model.check()
    assert read(model.log, 0) is None or model.log.log_end_offset > 0


def test_a_torn_tail_that_takes_all_of_a_log_takes_its_aborted_transactions_too():
    model = Model()
    for step in [("send", 0, 1), ("abort", 0, False), ("tear", 79, 0), ("send", 0, 1)]:
        model.do(*step)
    assert model.log.aborted_transactions(0, model.log.log_end_offset) == []
    model.kill()
    model.check()
