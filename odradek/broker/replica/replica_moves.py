"""Moves of partitions to other data directories (AlterReplicaLogDirs), while clients write and read them.

One partition is copied at a time, in the background. The others wait, and are reported as future replicas already. The loop
itself copies the last bit and switches to the new log: a pause of some syncs. A move that a stop interrupts begins anew at the
next start. If ``replica.alter.log.dirs.io.max.bytes.per.second`` is set, the copy is made in small pieces with rests between
them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.replica.replication_quota import ByteRate
from odradek.common.logging import log as broker_log
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.errors import MoveCancelled, TargetFailed

if TYPE_CHECKING:
    from odradek.broker.replica.housekeeping import Housekeeping
    from odradek.broker.replica.partition import Partition
    from odradek.broker.replica.partitions import Partitions
    from odradek.common.config.broker_config import BrokerConfig
    from odradek.controller.metadata.cluster_metadata import ClusterMetadata
    from odradek.storage.directories.data_directory import DataDirectory
    from odradek.storage.directories.log_manager import LogManager
    from odradek.storage.directories.log_move import CopyTask, LogMove
    from odradek.timing.timer import Timer

# The loop may copy this much in one go; if a log grows as fast as it is copied, _LARGE_REST_BYTES.
_REST_BYTES = 1024 * 1024
_PATIENT_ROUNDS = 10
_LARGE_REST_BYTES = 16 * _REST_BYTES
_RETRY_MS = 50


class ReplicaMoves:
    """The moves of one broker, by topic and partition. Loop thread only."""

    def __init__(
        self,
        config: BrokerConfig,
        partitions: Partitions,
        log_manager: LogManager,
        controller: ClusterMetadata,
        timer: Timer,
        housekeeping: Housekeeping,
    ) -> None:
        self._config = config
        self._partitions = partitions
        self._log_manager = log_manager
        self._controller = controller
        self._timer = timer
        self._housekeeping = housekeeping
        self._rate = ByteRate(
            timer.clock,
            lambda: int(config["replica.alter.log.dirs.io.max.bytes.per.second"]),
            count=config["alter.log.dirs.replication.quota.window.num"],
            sample_s=config["alter.log.dirs.replication.quota.window.size.seconds"],
        )
        self._moves: dict[tuple[str, int], LogMove] = {}
        # The move that is being copied.
        self._copying: LogMove | None = None
        self._is_closed = False

    def under_way(self) -> list[LogMove]:
        """Return the moves that are not done."""
        return list(self._moves.values())

    def resume(self) -> None:
        """Restart the moves that the last stop has interrupted."""
        for key, target in self._log_manager.unfinished_moves:
            partition = self._partitions.get(*key)
            if partition is None or target.failure:
                continue
            try:
                self.request(partition, target)
            except KafkaError as error:
                broker_log.warn("cannot move a partition", topic=key[0], partition=key[1], reason=error.reason)

    def request(self, partition: Partition, target: DataDirectory) -> None:
        """Move ``partition``. A target where it already is cancels its move. KafkaError: KAFKA_STORAGE_ERROR."""
        from odradek.storage.directories.log_move import LogMove

        log = partition.require_log()
        key = (partition.topic, partition.index)
        manager = self._log_manager
        move = self._moves.get(key)
        if move is not None and move.target is target:
            return
        self.cancel(key)
        if manager.home_of(log) is target:
            return
        if not manager.directories.are_online:
            # As Kafka: the log may be in an offline directory, too.
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "partitions cannot be moved while a data directory is offline")
        try:
            self._moves[key] = LogMove(manager, log, target)
        except OSError as error:
            manager.directory_error(target, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._timer.call_after(0, self._step)

    def cancel(self, key: tuple[str, int]) -> None:
        """Abort a move, if there is one."""
        move = self._moves.pop(key, None)
        if move is not None:
            move.is_cancelled = True
            if move is not self._copying:
                self._abandon(move)

    def _abandon(self, move: LogMove) -> None:
        move.abandon()
        self._housekeeping.remove_deleted_after(self._config["log.segment.delete.delay.ms"])

    def directory_failed(self, directory: DataDirectory) -> None:
        """Abort the moves to a failed directory, or from it."""
        for move in self.under_way():
            if move.target is directory or move.log.is_closed:
                self.cancel(move.key)

    def close(self) -> None:
        """Copy no more; the current copy ends soon. The next start resumes it."""
        self._is_closed = True
        for move in self._moves.values():
            move.is_cancelled = True

    def _step(self) -> None:
        """Continue a move: copy a round, or finish it."""
        if self._copying is not None or self._is_closed or not self._moves:
            return
        move = next((move for move in self._moves.values() if move.may_begin), None)
        if move is None or self._rate.is_exceeded:
            self._timer.call_after(_RETRY_MS, self._step)
            return
        try:
            task = move.next_task(_REST_BYTES if self._rate.is_limited else None)
            rest_bytes = _REST_BYTES if move.rounds < _PATIENT_ROUNDS else _LARGE_REST_BYTES
            if move.rounds and task.end_offset is not None and task.size_bytes <= rest_bytes and not move.log.awaits_flush:
                self._finish(move)
                self._timer.call_after(0, self._step)
                return
        except (KafkaError, OSError, TargetFailed, MoveCancelled) as error:
            self._fail(move, error)
            return
        self._copying = move
        failures: list[Exception] = []

        def copy() -> None:
            try:
                task.run()
            except Exception as error:  # noqa: BLE001  every error is handled on the loop
                failures.append(error)

        self._housekeeping.run_aside(copy, lambda: self._copied(move, task, failures))

    def _copied(self, move: LogMove, task: CopyTask, failures: list[Exception]) -> None:
        self._copying = None
        if self._rate.is_limited:
            self._rate.record(task.size_bytes)
        if self._is_closed:
            return
        if self._moves.get(move.key) is not move:
            self._abandon(move)
        elif failures:
            self._fail(move, failures[0])
        else:
            move.copied(task)
        self._timer.call_after(0, self._step)

    def _finish(self, move: LogMove) -> None:
        partition = self._partitions.require(*move.key)
        old = move.log
        try:
            partition.use_log(move.finish(self._timer.clock.now_ms()))
        except BaseException:
            if old.is_closed:
                partition.take_offline("the log could not be opened in its new directory")
            raise
        del self._moves[move.key]
        identity = move.target.identity
        if identity is not None:
            reply = self._controller.record_move(partition.topic_id, partition.index, identity.directory_id)
            reply.when_done(partial(_tell_unrecorded, move.key))
        self._housekeeping.remove_deleted_after(self._config["log.segment.delete.delay.ms"])
        broker_log.info("partition moved", topic=move.key[0], partition=move.key[1], path=move.target.path)

    def _fail(self, move: LogMove, error: Exception) -> None:
        broker_log.warn("cannot move a partition", topic=move.key[0], partition=move.key[1], reason=str(error))
        manager = self._log_manager
        if isinstance(error, TargetFailed):
            manager.directory_error(move.target, error.error)
        elif isinstance(error, OSError) and not move.log.is_closed:
            manager.note_error(move.log, error)
        self.cancel(move.key)
        self._timer.call_after(0, self._step)


def _tell_unrecorded(key: tuple[str, int], error: KafkaError | None) -> None:
    if error is not None:
        broker_log.warn("cannot record a moved partition in the metadata", topic=key[0], partition=key[1], reason=str(error))
