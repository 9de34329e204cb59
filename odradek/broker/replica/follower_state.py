"""What a leader knows of a follower by its fetches (Kafka: Replica, ReplicaState)."""

UNKNOWN_OFFSET = -1
# An epoch that was not told: the follower speaks a version of Fetch without it.
NO_EPOCH = -1


class FollowerState:
    """One follower, since this broker leads. Times are monotonic, in ms; ``broker_epoch`` is None before the first fetch."""

    __slots__ = ("_fetched_ms", "_leader_end_offset", "broker_epoch", "last_caught_up_ms", "log_end_offset", "log_start_offset")

    def __init__(self, *, caught_up_ms: float) -> None:
        """``caught_up_ms`` is now for an in-sync replica; for others long ago, so that they do not hold the high watermark."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.last_caught_up_ms = caught_up_ms
        self.broker_epoch: int | None = None
        # The last fetch: when it came, and where the leader's log ended then.
        self._fetched_ms = 0.0
        self._leader_end_offset = UNKNOWN_OFFSET

    def fetched(self, offset: int, log_start_offset: int, *, broker_epoch: int, leader_end_offset: int, now_ms: float) -> None:
        """The follower asks for the records from ``offset`` on, and so has all in front of it.

        It has caught up if that is the leader's end, or was at the fetch before: while others write all the time, no fetch would
        ever be at the end.
        """
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self._leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self._fetched_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._fetched_ms = now_ms
        self._leader_end_offset = max(self._leader_end_offset, leader_end_offset)

    def is_caught_up(self, leader_end_offset: int, now_ms: float, max_lag_ms: float) -> bool:
        """Whether it has all, or had all not longer than ``replica.lag.time.max.ms`` ago."""
        return self.log_end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= max_lag_ms
