"""A broker as an observer of the quorum: follows `__cluster_metadata` for as long as it runs (KIP-595, KIP-630).

One request is open at a time: a Fetch to the leader, or to any node while the leader is unknown; a FetchSnapshot while a snapshot
is being fetched. Fetched batches are appended to the broker's own copy of the log (``FollowedLog``). Its committed part is
replayed and published (``ImageFollower``), and changes of the leader are reported (``on_leader_change``). A copy that differs
from the leader's log is truncated: the leader names the epoch in which the two diverge.

Kafka's class is KafkaRaftClient. Left out: the work of voters.

A snapshot being fetched (KIP-630) is appended to ``<name>.checkpoint.part``. The next start removes a part left behind, and
fetches it again from its beginning. Before the part is renamed, it is read once. This checks every batch, and that the last one
is the footer.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Final

from odradek.client.api import Api, ClientError, RequestT, ResponseT
from odradek.client.node_client import ClientConfig, Connect, NodeClient
from odradek.common.logging import log as broker_log
from odradek.controller.metadata.metadata_log import MetadataUnreadable
from odradek.controller.metadata.snapshot_files import PART_SUFFIX, SnapshotFiles, SnapshotId
from odradek.controller.quorum.fetch_messages import (
    FETCH,
    FETCH_SNAPSHOT,
    LogPosition,
    ObserverIdentity,
    Unanswerable,
    bytes_of,
    fetch_request,
    fetch_snapshot_request,
    fetched_chunk,
    fetched_partition,
)
from odradek.controller.quorum.followed_log import FollowedLog, ImageFollower, TruncationBelowCommitted
from odradek.controller.quorum.leader_discovery import (
    Address,
    ElectionFile,
    InconsistentLeader,
    Leader,
    LeaderDiscovery,
    MembershipLost,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.fetch import PartitionData
from odradek.protocol.message_types.fetch_snapshot import PartitionSnapshot
from odradek.protocol.record_batch import Buffer
from odradek.storage.errors import OffsetsOutOfOrder, UnexpectedAppendOffset
from odradek.storage.filesystem import FileSystem
from odradek.storage.recovery.recovery import Warn
from odradek.timing.driver import Wakeup
from odradek.timing.slices import Slices
from odradek.timing.timer import Timer


class SnapshotDownload:
    """A snapshot being fetched into ``files``. Raises OSError."""

    def __init__(self, file_system: FileSystem, files: SnapshotFiles, snapshot: SnapshotId) -> None:
        self.snapshot = snapshot
        self._file_system = file_system
        self._part = files.path(snapshot) + PART_SUFFIX
        self._remove()
        self._file = file_system.open(self._part, create=True)

    @property
    def position(self) -> int:
        """Return the size in bytes."""
        return self._file.size()

    def append(self, chunk: Buffer) -> None:
        """Append the bytes that follow ``position``."""
        self._file.append([chunk])

    def sync(self) -> None:
        """Sync and close the complete part."""
        self._file.sync()
        self._file.close()

    def discard(self) -> None:
        """Abandon the download, and remove the part."""
        self._file.close()
        self._remove()

    def _remove(self) -> None:
        with suppress(FileNotFoundError):
            self._file_system.remove(self._part)


_MIB: Final = 1024 * 1024
# A batch is sent whole, whatever its size.
_LARGEST_RESPONSE_BYTES: Final = 64 * _MIB


class ObserverFailed(MembershipLost):
    """The broker cannot follow the quorum any more, and must stop. The message gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverConfig:
    """Kafka's settings ``controller.quorum.<name>``; ``fetch_max_wait_ms`` has no name in Kafka.

    ``voter_ids`` come from ``controller.quorum.voters``.
    """

    fetch_timeout_ms: int = 2_000
    request_timeout_ms: int = 2_000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = _MIB
    fetch_snapshot_max_bytes: int = _MIB
    voter_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverHost:
    """The broker's services for its observer. ``connect`` returns a function that connects to an address."""

    file_system: FileSystem
    timer: Timer
    slices: Slices
    random: Random
    connect: Callable[[Address], Connect]
    warn: Warn


class MetadataObserver:
    """Follows the quorum. Loop thread only."""

    def __init__(
        self,
        identity: ObserverIdentity,
        log: FollowedLog,
        follower: ImageFollower,
        discovery: LeaderDiscovery,
        elections: ElectionFile,
        host: ObserverHost,
        config: ObserverConfig,
    ) -> None:
        self.on_leader_change: Callable[[Leader | None], object] | None = None
        self._identity = identity
        self._log = log
        self._follower = follower
        self._discovery = discovery
        self._file_system = host.file_system
        self._elections = elections
        self._written = discovery.election
        self._connect = host.connect
        self._timer = host.timer
        self._slices = host.slices
        self._random = host.random
        self._config = config
        self._client: tuple[Address, NodeClient] | None = None
        self._download: SnapshotDownload | None = None
        self._told: Leader | None = None
        # The last failure of each node, until it answers again.
        self._complaints: dict[Address, str] = {}
        self._is_over = False

    @property
    def leader(self) -> Leader | None:
        """Return the active controller, if known."""
        return self._discovery.leader

    @property
    def is_fetching_snapshot(self) -> bool:
        """Return whether a snapshot is being fetched."""
        return self._download is not None

    async def run(self) -> None:
        """Follow until cancelled. The caller closes the log. Raises ObserverFailed."""
        try:
            self._note_election()
            while True:
                node = self._discovery.next_node(self._timer.clock.monotonic_ms())
                if isinstance(node, tuple):
                    await self._ask(node)
                else:
                    await Wakeup(self._timer).wait(node)
        except (InconsistentLeader, TruncationBelowCommitted, MetadataUnreadable) as error:
            raise ObserverFailed(str(error)) from error
        except KafkaError as error:
            raise ObserverFailed(f"{self._log.directory}: {error.reason}") from error
        except OSError as error:
            raise ObserverFailed(f"{self._log.directory}: {error}") from error
        finally:
            self._is_over = True
            self._drop_client()
            # The next start removes the part if this fails.
            with suppress(OSError):
                self._drop_download()

    async def _ask(self, node: Address) -> None:
        try:
            if self._download is not None and self.leader is not None and node == self.leader.address:
                await self._fetch_chunk(node, self._download)
            else:
                await self._fetch(node)
        except (ClientError, Unanswerable) as error:
            self._complain(node, str(error))
            self._discovery.failed(node, self._now())
            self._drop_client()
        else:
            self._complaints.pop(node, None)

    # ------------------------------------------------------------------------------------------------------------- Fetch

    async def _fetch(self, node: Address) -> None:
        log = self._log
        config = self._config
        position = LogPosition(log.end_offset, log.last_fetched_epoch, log.high_watermark)
        request = fetch_request(
            self._identity,
            self._discovery.election.epoch,
            position,
            max_wait_ms=config.fetch_max_wait_ms,
            max_bytes=config.fetch_max_bytes,
        )
        partition, answer = fetched_partition(await self._request(node, FETCH, request))
        counts = self._discovery.answered(node, answer, self._now())
        self._note_election()
        if counts:
            await self._take(node, partition)
            self._discovery.fetched(self._now())

    async def _take(self, node: Address, partition: PartitionData) -> None:
        """Apply the leader's answer."""
        log = self._log
        if partition.diverging_epoch.epoch >= 0:
            diverging = partition.diverging_epoch
            end_offset = log.truncate(diverging.epoch, diverging.end_offset, now_ms=self._timer.clock.now_ms())
            broker_log.info("metadata log truncated", end_offset=end_offset, leader_epoch=diverging.epoch)
        elif partition.snapshot_id.end_offset >= 0 and partition.snapshot_id.epoch >= 0:
            snapshot = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
            log.ensure_later(snapshot)
            broker_log.info("fetching a snapshot of the metadata", snapshot=snapshot.name)
            self._drop_download()
            self._download = SnapshotDownload(self._file_system, log.snapshots, snapshot)
        else:
            self._append(node, partition)
            if partition.high_watermark >= 0:
                log.advance(partition.high_watermark)
                await self._run(self._follower.advance(partition.high_watermark))

    def _append(self, node: Address, partition: PartitionData) -> None:
        records = bytes_of(partition.records)
        if not records:
            return
        try:
            self._log.append_fetched(records, leader_epoch=self._discovery.election.epoch, now_ms=self._timer.clock.now_ms())
        except (OffsetsOutOfOrder, UnexpectedAppendOffset) as error:
            raise ObserverFailed(f"the leader at {_text(node)} sent other records than requested: {error}") from error
        except KafkaError as error:
            if error.code != ErrorCode.CORRUPT_MESSAGE:
                raise
            # The network may have corrupted the records.
            raise Unanswerable(ErrorCode.CORRUPT_MESSAGE) from error

    # ----------------------------------------------------------------------------------------------------- FetchSnapshot

    async def _fetch_chunk(self, node: Address, download: SnapshotDownload) -> None:
        request = fetch_snapshot_request(
            self._identity,
            self._discovery.election.epoch,
            download.snapshot,
            download.position,
            max_bytes=self._config.fetch_snapshot_max_bytes,
        )
        chunk, answer = fetched_chunk(await self._request(node, FETCH_SNAPSHOT, request))
        if answer.error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
            # The leader has removed the snapshot, and will name another.
            answer = answer._replace(error=ErrorCode.NONE)
            self._drop_download()
        counts = self._discovery.answered(node, answer, self._now())
        self._note_election()
        if counts:
            if self._download is download:
                await self._take_chunk(download, chunk)
            self._discovery.fetched(self._now())

    async def _take_chunk(self, download: SnapshotDownload, chunk: PartitionSnapshot) -> None:
        snapshot = download.snapshot
        data = bytes_of(chunk.unaligned_records)
        is_asked_for = (chunk.snapshot_id.end_offset, chunk.snapshot_id.epoch, chunk.position) == (*snapshot, download.position)
        if not is_asked_for or not data or download.position + len(data) > chunk.size:
            self._drop_download()
            raise Unanswerable(0)
        download.append(data)
        if download.position < chunk.size:
            return
        download.sync()
        try:
            await self._run(self._follower.replace(snapshot, now_ms=self._timer.clock.now_ms()))
        except MetadataUnreadable as error:
            self._drop_download()
            raise Unanswerable(ErrorCode.CORRUPT_MESSAGE) from error
        self._download = None
        broker_log.info("metadata restarts from a snapshot", snapshot=snapshot.name)

    def _drop_download(self) -> None:
        download, self._download = self._download, None
        if download is not None:
            download.discard()

    # ---------------------------------------------------------------------------------------------------------- the rest

    def _note_election(self) -> None:
        """Write the election down before anyone acts on it; then report the leader."""
        discovery = self._discovery
        # Until the log has been read, the version is the last run's.
        version = max(self._elections.version, min(self._log.kraft_version, 1))
        if discovery.election != self._written or version != self._elections.version:
            self._elections.write(discovery.election, self._config.voter_ids, version=version)
            self._written = discovery.election
        if discovery.leader == self._told:
            return
        # Another leader may have other snapshots.
        self._drop_download()
        self._told = leader = discovery.leader
        if leader is not None:
            broker_log.info("the quorum has a leader", node=leader.node_id, address=_text(leader.address), epoch=leader.epoch)
        if self.on_leader_change is not None:
            self.on_leader_change(leader)

    async def _request(self, node: Address, api: Api[RequestT, ResponseT], request: RequestT) -> ResponseT:
        if self._client is None or self._client[0] != node:
            self._drop_client()
            timeout_ms = self._config.request_timeout_ms
            config = ClientConfig(
                client_id=f"odradek-observer-{self._identity.node_id}",
                request_timeout_ms=timeout_ms,
                connection_setup_timeout_ms=timeout_ms,
                max_response_bytes=_LARGEST_RESPONSE_BYTES,
            )
            self._client = node, NodeClient(self._connect(node), self._timer, self._random, config)
        return await self._client[1].request(api, request)

    def _drop_client(self) -> None:
        if self._client is not None:
            self._client[1].close()
            self._client = None

    async def _run(self, work: Generator[None, None, None]) -> None:
        """Do ``work`` in slices, and raise its error."""
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._slices.run(self._while_running(work)).when_done(lambda outcome: None if done.done() else done.set_result(outcome))
        outcome = await done
        if isinstance(outcome, Exception):
            raise outcome

    def _while_running(self, work: Generator[None, None, None]) -> Generator[None, None, None]:
        for _ in work:
            if self._is_over:
                return
            yield

    def _complain(self, node: Address, reason: str) -> None:
        """Log a failure, but not each repetition."""
        if self._complaints.get(node) != reason:
            self._complaints[node] = reason
            broker_log.warn("a node of the quorum does not answer", node=_text(node), reason=reason)

    def _now(self) -> float:
        return self._timer.clock.monotonic_ms()


def _text(node: Address) -> str:
    return f"{node[0]}:{node[1]}"
