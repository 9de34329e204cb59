"""What a leader knows of a follower by its fetches (Kafka: Replica, ReplicaState).

A fetch within a session names a partition only if it has changed. Of the others the follower has by ``FetchTimes`` what it had
before: nothing is written down for a partition in which nothing happens.
"""

from odradek.broker.replica.fetch_partitions import FetchTimes

UNKNOWN_OFFSET = -1
# An epoch that was not told: the follower speaks a version of Fetch without it.
NO_EPOCH = -1


class FollowerState:
    """One follower, since this broker leads. Times are monotonic, in ms; ``broker_epoch`` is None before the first fetch."""

    __slots__ = (
        "_caught_up_ms",
        "_fetched_ms",
        "_leader_end_offset",
        "_times",
        "broker_epoch",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, *, caught_up_ms: float) -> None:
        """``caught_up_ms`` is now for an in-sync replica; for others long ago, so that they do not hold the high watermark."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self._caught_up_ms = caught_up_ms
        self.broker_epoch: int | None = None
        # The last fetch: when it came, and where the leader's log ended then.
        self._fetched_ms = 0.0
        self._leader_end_offset = UNKNOWN_OFFSET
        # Those of the session in which the last fetch came. What it said holds for all fetches of the session since then.
        self._times: FetchTimes | None = None

    @property
    def last_caught_up_ms(self) -> float:
        """When it had all the last time, as far as it has told."""
        if self._times is None or self.log_end_offset < self._leader_end_offset:
            return self._caught_up_ms
        return max(self._caught_up_ms, self._times.last_ms)

    def reconsider(self) -> None:
        """A fetch is about to be read that may say something else than the one before, or be refused."""
        self._caught_up_ms = self.last_caught_up_ms
        if self._times is not None:
            self._fetched_ms = max(self._fetched_ms, self._times.last_ms)
            self._times = None

    def fetched(
        self,
        offset: int,
        log_start_offset: int,
        *,
        broker_epoch: int,
        leader_end_offset: int,
        now_ms: float,
        times: FetchTimes | None = None,
    ) -> None:
        """The follower asks for the records from ``offset`` on, and so has all in front of it.

        It has caught up if that is the leader's end, or was at the fetch before: while others write all the time, no fetch would
        ever be at the end.
        """
        self.reconsider()
        if offset >= leader_end_offset:
            self._caught_up_ms = max(self._caught_up_ms, now_ms)
        elif offset >= self._leader_end_offset:
            self._caught_up_ms = max(self._caught_up_ms, self._fetched_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._fetched_ms = now_ms
        self._leader_end_offset = max(self._leader_end_offset, leader_end_offset)
        self._times = times

    def is_caught_up(self, leader_end_offset: int, now_ms: float, max_lag_ms: float) -> bool:
        """Whether it has all, or had all not longer than ``replica.lag.time.max.ms`` ago."""
        return self.log_end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= max_lag_ms
