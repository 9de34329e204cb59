"""The leader of a quorum of one voter, as observers see it: what they fetch of the metadata log, and when they are answered.

A Fetch is answered with batches, with the point where the two logs diverge, or with a snapshot to begin at. The bytes of
snapshots are in ``snapshot_fetches``.

A request of another epoch is refused with the leader and its epoch, by which observers find out about restarts. A Fetch for which
there is nothing waits for the next commit, or for its time. Kafka's class is KafkaRaftClient (KIP-595, KIP-630, KIP-853).

Left out: all that voters tell one another.
"""

from typing import TYPE_CHECKING, Final
from uuid import UUID

from odradek.broker.controller.delayed_metadata_fetch import DelayedMetadataFetch
from odradek.broker.controller.observers import Observers
from odradek.broker.controller.quorum_log import EpochEnd, QuorumLog
from odradek.broker.metadata.delta import MetadataDelta
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.snapshot_files import SnapshotId
from odradek.broker.metadata.topic_names import CLUSTER_METADATA_TOPIC, CLUSTER_METADATA_TOPIC_ID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from odradek.protocol.message_types.fetch import SnapshotId as FetchedSnapshotId
from odradek.timing.clock import Clock
from odradek.timing.purgatory import Purgatory
from odradek.timing.reply import Reply
from odradek.timing.timer import Timer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.config.endpoints import Endpoint

MOST_BYTES: Final = 8 * 1024 * 1024
# Under which all fetches wait: there is one partition.
_KEY: Final = (CLUSTER_METADATA_TOPIC, 0)


class QuorumLeader:
    """Loop thread only. ``endpoints`` are the advertised listeners of the controller, by name."""

    def __init__(
        self,
        log: QuorumLog,
        *,
        node_id: int,
        cluster_id: str,
        directory_id: UUID,
        endpoints: "Mapping[str, Endpoint]",
        clock: Clock,
        timer: Timer,
    ) -> None:
        self.log = log
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.directory_id = directory_id
        self.endpoints = endpoints
        self.observers = Observers()
        self.purgatory: Purgatory[DelayedMetadataFetch] = Purgatory("Fetch", timer)
        self._clock = clock
        self._is_closed = False

    @property
    def epoch(self) -> int:
        """The epoch that began with this process."""
        return self.log.leader_epoch

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:  # noqa: ARG002
        """Part of MetadataPublisher: there is something to fetch."""
        self.purgatory.check_and_complete(_KEY)

    def close(self) -> None:
        """Answer the fetches that wait; there is no leader any more."""
        self._is_closed = True
        for operation in self.purgatory.cancel_for_key(_KEY):
            operation.force_complete()

    # ------------------------------------------------------------------------------------------------------------- Fetch

    def fetch(self, request: FetchRequest, listener_name: str) -> FetchResponse | Reply[FetchResponse]:
        """Answer a Fetch of the metadata log."""
        partition = _only_partition(request)
        if request.cluster_id not in (None, self.cluster_id):
            return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        if partition is None:
            return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
        numbers = (request.max_wait_ms, partition.fetch_offset, partition.last_fetched_epoch, partition.current_leader_epoch)
        if min(numbers) < 0:
            return self._fetched(PartitionData(error_code=ErrorCode.INVALID_REQUEST), listener_name)
        found = self._look(request, partition)
        if request.max_wait_ms == 0 or not self._is_nothing(found, partition):
            return self._fetched(found, listener_name)
        reply: Reply[FetchResponse] = Reply()
        delayed = DelayedMetadataFetch(
            self._clock.monotonic_ms() + request.max_wait_ms,
            has_news=lambda: self._has_news(partition),
            answer=lambda: reply.complete(_response(self._look(request, partition))),
        )
        self.purgatory.try_complete_else_watch(delayed, (_KEY,))
        return reply.then(lambda response: self._told(response, listener_name))

    def _has_news(self, partition: FetchPartition) -> bool:
        """Whether a fetch that waits is to be answered."""
        return self._is_closed or self.log.high_watermark > partition.fetch_offset

    def _look(self, request: FetchRequest, partition: FetchPartition) -> PartitionData:
        error = self.refusal(partition.current_leader_epoch)
        if error:
            return self._about()._replace(error_code=error)
        log = self.log
        found = log.check(partition.fetch_offset, partition.last_fetched_epoch)
        if isinstance(found, EpochEnd):
            return self._about()._replace(diverging_epoch=EpochEndOffset(*found))
        if isinstance(found, SnapshotId):
            return self._about()._replace(snapshot_id=FetchedSnapshotId(*found))
        self._note(request, partition)
        try:
            records = log.read(partition.fetch_offset, min(request.max_bytes, MOST_BYTES))
        except (KafkaError, OSError):
            # What the disk has said is in the log.
            return self._about()._replace(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        return self._about()._replace(records=records)

    def _note(self, request: FetchRequest, partition: FetchPartition) -> None:
        replica_id = request.replica_state.replica_id
        if replica_id >= 0 and replica_id != self.node_id:
            key = (replica_id, partition.replica_directory_id)
            self.observers.fetched(key, partition.fetch_offset, self.log.end_offset, self._clock.now_ms())

    def _is_nothing(self, found: PartitionData, asked: FetchPartition) -> bool:
        """Whether an answer is better waited with."""
        knows_high_watermark = asked.high_watermark >= found.high_watermark
        says_something = found.error_code or found.diverging_epoch.epoch >= 0 or found.snapshot_id.end_offset >= 0
        return not (says_something or found.records) and knows_high_watermark

    def _about(self) -> PartitionData:
        """What every answer tells."""
        return PartitionData(
            high_watermark=self.log.high_watermark,
            log_start_offset=self.log.start_offset,
            current_leader=LeaderIdAndEpoch(self.node_id, self.epoch),
        )

    def _fetched(self, partition: PartitionData, listener_name: str) -> FetchResponse:
        return self._told(_response(partition), listener_name)

    def _told(self, response: FetchResponse, listener_name: str) -> FetchResponse:
        endpoint = self.endpoints.get(listener_name)
        if endpoint is None:
            return response
        return response._replace(node_endpoints=[NodeEndpoint(self.node_id, endpoint.host, endpoint.port)])

    def refusal(self, epoch: int) -> int:
        """The error for a request of an ``epoch``, NONE for one of this leader's."""
        if self._is_closed:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > self.epoch else ErrorCode.NONE


def _only_partition(request: FetchRequest) -> FetchPartition | None:
    """The request's metadata partition; None if the request names another partition, or several."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    [topic] = request.topics
    [partition] = topic.partitions
    is_metadata = topic.topic_id == CLUSTER_METADATA_TOPIC_ID or topic.topic == CLUSTER_METADATA_TOPIC
    return partition if is_metadata and partition.partition == 0 else None


def _response(partition: PartitionData) -> FetchResponse:
    topic = FetchableTopicResponse(topic=CLUSTER_METADATA_TOPIC, topic_id=CLUSTER_METADATA_TOPIC_ID, partitions=[partition])
    return FetchResponse(responses=[topic])
