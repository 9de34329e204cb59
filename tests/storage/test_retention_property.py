"""Which segments go, against Kafka's rules written down as it runs them: three passes, each from the oldest segment on."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from odradek.storage.log.log_config import LogConfig
from tests.storage.support import NOW_MS, append, batch, open_log


@dataclass
class Model:
    """What Kafka's UnifiedLog knows of it. ``segments`` are (base offset, bytes, largest timestamp)."""

    segments: list
    end: int
    high_watermark: int
    start: int

    def run_pass(self, is_old):
        """Remove segments from the first on while they are old, and readers have them whole; a new one begins behind the last."""
        while True:
            _, size, timestamp = self.segments[0]
            following = self.segments[1][0] if len(self.segments) > 1 else None
            upper = self.end if following is None else following
            if self.high_watermark < upper or (following is None and size == 0):
                return
            if not is_old(size, timestamp, following):
                return
            if following is None:
                self.segments.append((self.end, 0, -1))
            del self.segments[0]
            self.start = max(self.start, self.segments[0][0])

    def delete_old(self, config, now_ms):
        self.run_pass(lambda size, timestamp, following: following is not None and following <= self.start)
        if "delete" not in config.cleanup_policy:
            return
        if config.retention_bytes >= 0:
            surplus = [sum(size for _, size, _ in self.segments) - config.retention_bytes]

            def is_surplus(size, timestamp, following):
                if surplus[0] - size < 0:
                    return False
                surplus[0] -= size
                return True

            self.run_pass(is_surplus)
        if config.retention_ms >= 0:
            self.run_pass(lambda size, timestamp, following: now_ms - timestamp > config.retention_ms)


batches = st.tuples(st.integers(1, 4), st.sampled_from([0, 5, 6, 15, 16]), st.sampled_from([0, 30]))


@given(
    written=st.lists(batches, max_size=12),
    start_share=st.floats(0, 1),
    unflushed=st.integers(0, 3),
    policy=st.sampled_from([("delete",), (), ("delete", "compact")]),
    retention_ms=st.sampled_from([-1, 0, 5, 15]),
    retention_bytes=st.sampled_from([-1, 0, 200, 600]),
)
def test_what_goes_is_what_kafka_lets_go(written, start_share, unflushed, policy, retention_ms, retention_bytes):
    config = LogConfig(segment_bytes=300, cleanup_policy=policy, retention_ms=retention_ms, retention_bytes=retention_bytes)
    log = open_log(config=config)
    for number, (count, age_ms, value_bytes) in enumerate(written):
        if number == len(written) - unflushed:
            log.flush(NOW_MS)
            log.config = LogConfig(segment_bytes=300, flush_messages=1)
            log.flush_state.on_flush_due = lambda _: None
        append(log, batch(count, timestamp=NOW_MS - age_ms, key=b"k", value=b"v" * value_bytes))
    log.config = config
    readable = log.flushed_offset if log.awaits_flush else log.log_end_offset
    log.delete_records_before(int(start_share * readable))
    model = Model(
        [(segment.base_offset, segment.size, segment.learn_max_timestamp()) for segment in log.segments],
        log.log_end_offset,
        readable,
        log.log_start_offset,
    )
    model.delete_old(config, NOW_MS)
    log.retention.release_old_segments(NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [base for base, _, _ in model.segments]
    assert log.log_start_offset == model.start <= readable
