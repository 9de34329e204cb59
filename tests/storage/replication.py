"""A leader's log with all that a log may have, and a follower's that fetches it."""

from hypothesis import strategies as st

from odradek.storage.log.log_config import LogConfig
from tests.storage.support import NOW_MS, append, batch
from tests.storage.transactional import end, state_of, transactional_batch

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=150)

# What is appended, by whom, and to what end: see ``Leader.do``.
ACTIONS = st.tuples(
    st.sampled_from(["plain", "idempotent", "transactional", "commit", "abort", "internal", "epoch"]),
    st.integers(1, 3),
    st.integers(1, 4),
)


class Leader:
    """Appends to ``log`` as a leader does. Producers 1 to 3 are idempotent, 11 to 13 transactional."""

    def __init__(self, log, *, epoch=0, sequences=None):
        self.log = log
        self.epoch = epoch
        self.sequences = dict(sequences or {})
        self.clock_ms = NOW_MS

    def do(self, action, producer, count):
        self.clock_ms += 7
        if action == "plain":
            append(self.log, batch(count, timestamp=self.clock_ms), leader_epoch=self.epoch)
        elif action == "idempotent":
            self._append(producer, batch, count)
        elif action == "transactional":
            self._append(producer + 10, transactional_batch, count)
        elif action in ("commit", "abort"):
            end(self.log, commit=action == "commit", producer=producer + 10, now_ms=self.clock_ms, leader_epoch=self.epoch)
        elif action == "internal":
            records = [(b"key", b"value")] * count
            self.log.coordinator_appends.append_internal(records, leader_epoch=self.epoch, now_ms=self.clock_ms)
        else:
            self.epoch += count

    def _append(self, producer, build, count):
        sequence = self.sequences.get(producer, 0)
        options = {"producer": producer} if build is transactional_batch else {"producer_id": producer, "producer_epoch": 0}
        position = {"sequence": sequence} if build is transactional_batch else {"base_sequence": sequence}
        records = build(count=count, timestamp=self.clock_ms, **position, **options)
        self.log.append(records, leader_epoch=self.epoch, now_ms=self.clock_ms, transaction_verified=True)
        self.sequences[producer] = sequence + count


def fetch(leader, follower, max_bytes=1 << 20, *, leader_epoch=1 << 20):
    """Let ``follower`` fetch all that ``leader`` has, at most ``max_bytes`` at a time unless a batch is larger."""
    while follower.log_end_offset < leader.log_end_offset:
        found = leader.read(follower.log_end_offset, max_bytes, upper_offset=leader.log_end_offset, min_one_batch=True)
        assert follower.append_as_follower(found.read(), leader_epoch=leader_epoch, now_ms=NOW_MS) is not None


def content(log):
    """A log's records as bytes, in one piece."""
    return b"".join(segment.file.pread(segment.size, 0) for segment in log.segments)


def files_of(log, suffixes=(".log", ".index", ".timeindex", ".txnindex", "leader-epoch-checkpoint")):
    """The files by their names, with all that is known written to them."""
    log.write_out()
    file_system = log.file_system
    return {
        name: bytes(file_system.read_bytes(f"{log.directory}/{name}"))
        for name in file_system.list_dir(log.directory)
        if name.endswith(suffixes)
    }


def known_of(log):
    """All that can be asked of a log, but for where its segments begin."""
    end_offset = log.log_end_offset
    timestamps = [log.offset_for_timestamp(NOW_MS + ms) for ms in range(0, 500, 13)]
    return {
        "offsets": (log.log_start_offset, end_offset),
        "content": content(log),
        "epochs": log.leader_epochs.entries,
        "producers": state_of(log),
        "first unstable": log.first_unstable_offset,
        "timestamps": timestamps,
        "youngest": log.max_timestamp_offset(),
        "found": [log.read(offset, 1, upper_offset=end_offset, min_one_batch=True).read() for offset in range(end_offset)],
    }
