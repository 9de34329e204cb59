"""A quorum of controllers in memory: what its nodes answer to an observer's Fetch and FetchSnapshot, as Kafka's do."""

from random import Random
from uuid import UUID

from odradek.common.config import load
from odradek.controller.metadata.cluster_metadata import Publishers, PublishingOrder
from odradek.controller.metadata.image import MetadataImage
from odradek.controller.metadata.snapshot_files import SnapshotFiles, SnapshotId
from odradek.controller.metadata.snapshot_generator import SnapshotGenerator
from odradek.controller.quorum.fetch_messages import ObserverIdentity
from odradek.controller.quorum.leader_discovery import NO_LEADER, QuorumNode
from odradek.controller.quorum.observer import ObserverConfig, ObserverHost
from odradek.controller.quorum.start import open_observer
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types import fetch, fetch_snapshot
from odradek.protocol.metadata_records import FeatureLevelRecord, TopicRecord, encode
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.records import Record, build_batch
from odradek.storage.log.log_config import LogConfig
from odradek.timing.background import InlineBackground
from odradek.timing.slices import Slices
from odradek.timing.timer import Timer
from tests.client.net import Net, settle
from tests.memory_filesystem import MemoryFileSystem

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
OBSERVER_ID = 7
DATA_DIR = "/data"
LOG_DIR = f"{DATA_DIR}/__cluster_metadata-0"
NOW_MS = 1_700_000_000_000
LEADER_CHANGE_KEY = bytes((0, 0, 0, 2))
METADATA_VERSION = FeatureLevelRecord(name="metadata.version", feature_level=33)


def topic(number):
    """The records of one change: topic ``t<number>``."""
    return [TopicRecord(name=f"t{number}", topic_id=UUID(int=1000 + number))]


def batch_of(records, base_offset, epoch):
    """The records as a controller of ``epoch`` writes them."""
    values = [Record(timestamp=NOW_MS, value=encode(record)) for record in records]
    return build_batch(values, base_offset=base_offset, leader_epoch=epoch)


class Controller:
    """A node of the quorum: its log, and what it knows of the quorum."""

    def __init__(self, quorum, node_id):
        self.quorum = quorum
        self.node_id = node_id
        self.epoch = 0
        self.leader_id = NO_LEADER
        self.batches = []
        self.start = SnapshotId(0, 0)
        self.high_watermark = 0
        self.snapshots = {}
        # From where parts of snapshots were asked for.
        self.positions = []
        # The last Fetch, and answers that are to be given instead of the true one.
        self.asked = None
        self.instead = []
        self.instead_of_chunks = []
        self.net = Net(self.answer)

    @property
    def address(self):
        return f"c{self.node_id}", 9093

    @property
    def end(self):
        """Offset and epoch where the log ends."""
        if not self.batches:
            return self.start
        _, header = next(iter_batches(self.batches[-1]))
        return SnapshotId(header.next_offset, header.partition_leader_epoch)

    @property
    def data(self):
        """The log's bytes."""
        return b"".join(self.batches)

    def append(self, *changes, commits=True):
        """Append a batch for each change; committed ones are so at once."""
        for records in changes:
            self.batches.append(batch_of(records, self.end.end_offset, self.epoch))
        if commits:
            self.high_watermark = self.end.end_offset

    def append_control(self, *, commits=True):
        """Append the batch that a new leader begins with, which is no metadata: a LeaderChangeMessage."""
        record = Record(timestamp=NOW_MS, key=LEADER_CHANGE_KEY, value=bytes(8))
        batch = build_batch([record], base_offset=self.end.end_offset, leader_epoch=self.epoch, control=True)
        self.batches.append(batch)
        if commits:
            self.high_watermark = self.end.end_offset

    def begin_at(self, snapshot, records):
        """Replace the log by a snapshot of ``records``."""
        files = MemoryFileSystem()
        files.make_dirs("/s")
        SnapshotFiles(files, "/s").write(snapshot, records, [], contained_ms=NOW_MS, now_ms=NOW_MS)
        self.snapshots = {snapshot: files.read_bytes(f"/s/{snapshot.name}")}
        self.batches = []
        self.start = snapshot
        self.high_watermark = max(self.high_watermark, snapshot.end_offset)

    def answer(self, api_key, version, request):
        """Part of Net."""
        assert version >= 1
        instead = self.instead if api_key == ApiKey.FETCH else self.instead_of_chunks
        if instead:
            return instead.pop(0)
        return self._fetch(request) if api_key == ApiKey.FETCH else self._fetch_snapshot(request)

    def _error(self, request, epoch):
        if request.cluster_id != CLUSTER_ID:
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self.leader_id == self.node_id else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _fetch(self, request):
        [asked] = request.topics
        [partition] = asked.partitions
        self.asked = request
        error = self._error(request, partition.current_leader_epoch)
        if error == ErrorCode.INCONSISTENT_CLUSTER_ID:
            return fetch.FetchResponse(error_code=error)
        found = {} if error else self._found(partition, request.max_bytes)
        data = fetch.PartitionData(error_code=error, current_leader=fetch.LeaderIdAndEpoch(self.leader_id, self.epoch), **found)
        topic_data = fetch.FetchableTopicResponse(topic_id=asked.topic_id, partitions=[data])
        return fetch.FetchResponse(responses=[topic_data], node_endpoints=self._endpoints(fetch.NodeEndpoint))

    def _found(self, partition, max_bytes):
        offset, epoch = partition.fetch_offset, partition.last_fetched_epoch
        # As ``ReplicatedLog.validateOffsetAndEpoch`` has it.
        is_before = offset < self.start.end_offset or epoch < self.start.epoch
        if is_before or (offset == self.start.end_offset and epoch != self.start.epoch):
            return {"snapshot_id": fetch.SnapshotId(*self.start)}
        known_epoch, end = self._end_of(epoch)
        if known_epoch != epoch or end < offset:
            return {"diverging_epoch": fetch.EpochEndOffset(known_epoch, end)}
        wanted = [batch for batch in self.batches if next(iter_batches(batch))[1].base_offset >= offset]
        # At least one batch, and those that fit.
        fitting = [batch for number, batch in enumerate(wanted) if not number or sum(map(len, wanted[: number + 1])) <= max_bytes]
        records = b"".join(fitting)
        return {"records": records, "high_watermark": self.high_watermark}

    def _end_of(self, epoch):
        """The largest epoch not above ``epoch``, and where it ends."""
        known = self.start
        for batch in self.batches:
            _, header = next(iter_batches(batch))
            if header.partition_leader_epoch > epoch:
                break
            known = SnapshotId(header.next_offset, header.partition_leader_epoch)
        return known.epoch, known.end_offset

    def _fetch_snapshot(self, request):
        [asked] = request.topics
        [partition] = asked.partitions
        self.positions.append(partition.position)
        wanted = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        error = self._error(request, partition.current_leader_epoch)
        data = self.snapshots.get(wanted)
        if not error and data is None:
            error = ErrorCode.SNAPSHOT_NOT_FOUND
        chunk = {"unaligned_records": b""}
        if not error:
            records = data[partition.position : partition.position + request.max_bytes]
            chunk = {"size": len(data), "position": partition.position, "unaligned_records": records}
        answer = fetch_snapshot.PartitionSnapshot(
            error_code=error,
            snapshot_id=fetch_snapshot.SnapshotId(*wanted),
            current_leader=fetch_snapshot.LeaderIdAndEpoch(self.leader_id, self.epoch),
            **chunk,
        )
        return fetch_snapshot.FetchSnapshotResponse(
            topics=[fetch_snapshot.TopicSnapshot(name=asked.name, partitions=[answer])],
            node_endpoints=self._endpoints(fetch_snapshot.NodeEndpoint),
        )

    def _endpoints(self, make):
        known = self.quorum.controllers.get(self.leader_id)
        return [] if known is None else [make(node_id=known.node_id, host=known.address[0], port=known.address[1])]


class Quorum:
    """Controllers 1 to 3."""

    def __init__(self):
        self.controllers = {number: Controller(self, number) for number in (1, 2, 3)}

    def elect(self, leader_id, epoch, *, told=(1, 2, 3)):
        """Let a node lead, as far as others know."""
        for number in told:
            self.controllers[number].epoch = epoch
            self.controllers[number].leader_id = leader_id
        return self.controllers[leader_id]

    def kill(self, node_id):
        """End a node: nothing connects to it."""
        net = self.controllers[node_id].net
        net.refuses = True
        for link in net.links:
            link.lose()

    @property
    def nodes(self):
        return [QuorumNode(each.node_id, *each.address) for each in self.controllers.values()]

    def connect(self, address):
        """Part of ObserverHost."""
        return next(each.net.connect for each in self.controllers.values() if each.address == address)


class Told:
    """A publisher that keeps what it was told, and the image's topics at that time."""

    def __init__(self):
        self.deltas = []
        self.topics = []

    def publish(self, delta, image):
        self.deltas.append(delta)
        self.topics.append(sorted(image.topics))


class Generator:
    """Stands in for the SnapshotGenerator."""

    def __init__(self):
        self.appended_bytes = []
        self.found_bytes = 0

    def appended(self, size_bytes):
        self.appended_bytes.append(size_bytes)

    def found(self, size_bytes):
        self.found_bytes += size_bytes


class Following:
    """An observer that runs, and what it has made. With ``settings``, a broker's, it writes snapshots of its own."""

    def __init__(self, quorum, file_system, clock, settings=None, segment_bytes=1 << 30, **config):
        self.image = MetadataImage()
        self.told = Told()
        self.leaders = []
        self.task = None
        self.clock = clock
        self.generator = Generator()
        self.publishers = publishers = Publishers()
        publishers.add(self.told, PublishingOrder.PARTITIONS)
        host = ObserverHost(
            file_system=file_system,
            timer=Timer(clock),
            slices=Slices(clock.monotonic_ms, lambda action: None),
            random=Random(1),
            connect=quorum.connect,
            warn=lambda event, **what: None,
        )
        self.log, self.follower, self.observer = open_observer(
            host,
            ObserverIdentity(CLUSTER_ID, OBSERVER_ID, UUID(int=99)),
            quorum.nodes,
            data_dir=DATA_DIR,
            image=self.image,
            publishers=publishers,
            make_snapshots=lambda log: self.generator if settings is None else self.own_snapshots(log, settings),
            config=ObserverConfig(voter_ids=(1, 2, 3), **config),
            log_config=LogConfig(segment_bytes=segment_bytes),
        )
        self.observer.on_leader_change = self.leaders.append

    def own_snapshots(self, log, settings):
        return SnapshotGenerator(log, self.image, load(overrides=settings), self.clock, InlineBackground())

    async def until(self, condition):
        """Run, with time passing, until ``condition`` holds."""
        for _ in range(500):
            if condition():
                return
            await settle()
            self.clock.advance(10)
        if self.task is not None and self.task.done():
            await self.task
        raise AssertionError("it did not come to it")

    async def caught_up(self, controller):
        await self.until(lambda: self.follower.is_caught_up and self.log.applied_offset == controller.high_watermark)
