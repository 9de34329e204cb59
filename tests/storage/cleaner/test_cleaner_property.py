"""Random logs and cleans against a model that knows nothing of bytes: which records are there, and for how long."""

from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from odradek.storage.cleaning.cleaner import CleanerLimits
from tests.memory_filesystem import MemoryFileSystem
from tests.storage.cleaner.support import clean_up, compacted, pairs_of, put, read_committed, records_of
from tests.storage.support import NOW_MS, open_log
from tests.storage.transactional import end, state_of

_RETENTION_MS = 100
_SEGMENT_BYTES = 1500
_PRODUCERS = (7, 8)
_keys = st.sampled_from([b"a", b"b", b"c", b"key of some length", b"x" * 70])
_values = st.none() | st.binary(max_size=20) | st.just(b"v" * 100)
_pairs = st.lists(st.tuples(_keys, _values), min_size=1, max_size=6)
_codecs = st.integers(0, 4)
_steps = st.one_of(
    st.tuples(st.just("plain"), _pairs, _codecs),
    st.tuples(st.just("plain"), _pairs, _codecs),
    st.tuples(st.just("send"), st.sampled_from(_PRODUCERS), _pairs, _codecs),
    st.tuples(st.just("send"), st.sampled_from(_PRODUCERS), _pairs, _codecs),
    st.tuples(st.just("end"), st.sampled_from(_PRODUCERS), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(st.just("wait"), st.integers(1, 150)),
    st.tuples(st.just("clean"), st.sampled_from([700, 1000, 100_000])),
    st.tuples(st.just("forget")),
    st.tuples(st.just("reopen"), st.booleans()),
)


@dataclass
class _Batch:
    """What a log has of a batch: ``records`` by offset. ``transaction`` is its number, None outside of any."""

    records: dict[int, tuple[bytes, bytes | None]]
    transaction: int | None = None
    horizon_ms: int | None = None


@dataclass
class _Model:
    batches: dict[int, _Batch] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    committed: set[int] = field(default_factory=set)
    cleaned: int = 0

    def append(self, offset, pairs, transaction=None):
        self.batches[offset] = _Batch(dict(enumerate(pairs, offset)), transaction)

    def clean(self, dirty, end_offset, processed_offset, now_ms):
        """Dirty keys count from ``dirty`` to ``end_offset``, and records are looked at below ``processed_offset``."""
        last = {}
        for batch in self.batches.values():
            if batch.transaction not in self.aborted:
                last |= {key: offset for offset, (key, _) in batch.records.items() if dirty <= offset < end_offset}
        for base_offset, batch in self.batches.items():
            if base_offset >= processed_offset:
                continue
            is_over = batch.horizon_ms is not None and batch.horizon_ms <= now_ms
            batch.records = {
                offset: (key, value)
                for offset, (key, value) in batch.records.items()
                if batch.transaction not in self.aborted
                and (offset >= end_offset or (offset >= last.get(key, -1) and not (is_over and value is None)))
            }
            if batch.horizon_ms is None and any(value is None for _, value in batch.records.values()):
                batch.horizon_ms = now_ms + _RETENTION_MS
        self.cleaned = end_offset

    def view(self, *, committed):
        return [
            (offset, *pair)
            for batch in self.batches.values()
            if not committed or batch.transaction is None or batch.transaction in self.committed
            for offset, pair in batch.records.items()
        ]


class _Run:
    def __init__(self):
        self.files = MemoryFileSystem()
        self.config = compacted(segment_bytes=_SEGMENT_BYTES, delete_retention_ms=_RETENTION_MS)
        self.log = open_log(self.files, config=self.config)
        self.model = _Model()
        self.now_ms = NOW_MS
        self.sequences = dict.fromkeys(_PRODUCERS, 0)
        self.epochs = dict.fromkeys(_PRODUCERS, 0)
        self.open = {}
        self.transactions = 0

    def plain(self, pairs, codec):
        self.model.append(put(self.log, *pairs, now_ms=self.now_ms, compression=codec), pairs)

    def send(self, producer, pairs, codec):
        if producer not in self.open:
            self.transactions += 1
            self.open[producer] = self.transactions
        options = {"producer_id": producer, "producer_epoch": self.epochs[producer], "base_sequence": self.sequences[producer]}
        offset = put(self.log, *pairs, now_ms=self.now_ms, compression=codec, transactional=True, **options)
        self.sequences[producer] += len(pairs)
        self.model.append(offset, pairs, self.open[producer])

    def end(self, producer, commit):
        if producer in self.open:
            end(self.log, commit=commit, producer=producer, epoch=self.epochs[producer], now_ms=self.now_ms)
            (self.model.committed if commit else self.model.aborted).add(self.open.pop(producer))

    def roll(self):
        self.log.roll(self.now_ms)

    def wait(self, duration_ms):
        self.now_ms += duration_ms

    def forget(self):
        """``producer.id.expiration.ms`` has passed for those without an open transaction; who comes back has a new epoch."""
        for producer in _PRODUCERS:
            if producer not in self.open:
                self.log.producers.by_id.pop(producer, None)
                self.epochs[producer] += 1
                self.sequences[producer] = 0

    def reopen(self, clean):
        before = state_of(self.log)[1:] if clean else None
        if clean:
            self.log.close(clean=True, now_ms=self.now_ms)
        self.log = open_log(self.files, config=self.config, clean=clean, now_ms=self.now_ms, recovery_point=0)
        if clean:
            assert state_of(self.log)[1:] == before
        for producer in _PRODUCERS:
            known = self.log.producers.by_id.get(producer)
            if self.sequences[producer]:
                assert (known.epoch, known.last_sequence + 1) == (self.epochs[producer], self.sequences[producer])

    def clean(self, memory_bytes):
        bases = [segment.base_offset for segment in self.log.segments]
        limits = CleanerLimits(dedupe_buffer_bytes=memory_bytes, load_factor=1.0, io_buffer_bytes=400)
        dirty = self.model.cleaned
        stats = clean_up(self.log, dirty, now_ms=self.now_ms, limits=limits)
        if stats is not None:
            assert stats.end_offset > dirty
            processed = next((base for base in bases if base >= stats.end_offset), self.log.log_end_offset)
            self.model.clean(dirty, stats.end_offset, processed, self.now_ms)
        self.compare()

    def compare(self):
        assert pairs_of(self.log) == self.model.view(committed=False)
        unstable = self.log.first_unstable_offset
        stable = self.model.view(committed=True)
        assert read_committed(self.log) == [entry for entry in stable if unstable is None or entry[0] < unstable]

    def play(self, steps):
        for name, *arguments in steps:
            getattr(self, name)(*arguments)


@settings(max_examples=150, deadline=None)
@given(st.lists(_steps, min_size=5, max_size=60))
@example([("send", 7, [(b"a", b"1")], 0), ("end", 7, False), ("roll",), ("clean", 700), ("clean", 700), ("reopen", False)])
@example(
    [
        *[("send", 7, [(b"a", b"1")], 0), ("end", 7, False), ("roll",), ("plain", [(b"a", b"2")], 0), ("clean", 1000)],
        *[("plain", [(b"a", b"3")], 0), ("send", 7, [(b"a", b"4")], 0), ("end", 7, True)],
    ]
)
def test_what_a_consumer_reads_after_cleaning_is_what_the_model_keeps(steps):
    run = _Run()
    run.play(steps)
    run.roll()
    run.clean(100_000)
    run.reopen(clean=False)
    run.compare()
    assert all(record.timestamp >= NOW_MS for record in records_of(run.log))
    for segment in run.log.segments:
        assert segment.size <= _SEGMENT_BYTES


@settings(max_examples=60, deadline=None)
@given(st.lists(_steps, min_size=5, max_size=40))
def test_what_was_cleaned_is_cleaned_again_only_as_times_run_out(steps):
    run = _Run()
    run.play(steps)
    for producer in _PRODUCERS:
        run.end(producer, commit=True)
    run.roll()
    clean_up(run.log, 0, now_ms=run.now_ms)
    seen = pairs_of(run.log)
    # Markers get their time, and small segments grow together.
    for _ in range(10):
        written = clean_up(run.log, 0, now_ms=run.now_ms)
        assert pairs_of(run.log) == seen
        if written is None or written.written_bytes == 0:
            break
    else:
        raise AssertionError("never done")
