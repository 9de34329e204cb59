"""A controller's node without listeners, on a disk in memory and a virtual clock, asked by messages and by frames."""

from random import Random
from uuid import UUID

from odradek.broker.api.controller import SERVED
from odradek.broker.start.controller_node import ControllerNode
from odradek.broker.start.shared_server import SharedServer
from odradek.broker.start.storage_start import log_manager_for
from odradek.common.config import load
from odradek.common.config.listener_config import Endpoint
from odradek.common.context import Reply, RequestContext, Session
from odradek.controller.metadata.snapshot_generator import write_bootstrap
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.message_types import fetch, fetch_snapshot
from odradek.timing.background import InlineBackground
from odradek.timing.clock import VirtualClock
from tests.memory_filesystem import MemoryFileSystem

NODE_ID = 3
LISTENER = "CONTROLLER"
SETTINGS = {
    "process.roles": "controller",
    "node.id": str(NODE_ID),
    "controller.listener.names": LISTENER,
    "listeners": f"{LISTENER}://:9093",
    "log.dirs": "/data",
}
METADATA_ID = UUID(int=1)


class NodeBed:
    """``node`` is started anew, on the same disk, by ``start``. The directory was formatted with ``bootstrap``, if any."""

    def __init__(self, bootstrap=(), /, **settings):
        self.config = load(None, SETTINGS | {name.replace("_", "."): value for name, value in settings.items()})
        self.file_system = MemoryFileSystem()
        self.clock = VirtualClock()
        self.failures = []
        self.shared = SharedServer(
            self.config,
            clock=self.clock,
            background=InlineBackground(),
            file_system=self.file_system,
            random=Random(1),
            call_soon=lambda _: None,
            on_failed=self.failures.append,
        )
        if bootstrap:
            self.format(bootstrap)
        self.start()

    def format(self, bootstrap):
        log_manager = log_manager_for(self.shared)
        log_manager.start()
        log_manager.release()
        write_bootstrap(self.file_system, "/data", bootstrap, 0)

    def start(self):
        self.log_manager = log_manager_for(self.shared)
        bound = {LISTENER: Endpoint(LISTENER, "127.0.0.1", 9093)}
        self.node = ControllerNode(self.shared, self.log_manager, self.log_manager.start(), bound)
        self.node.start()

    def restart(self):
        self.node.close()
        self.log_manager.shutdown(self.clock.now_ms())
        self.start()

    def ask(self, api_key, request, version=None):
        """The response, or the Reply of one that waits. It is encoded in the version that was asked for."""
        version = SERVED[api_key].max_version if version is None else version
        outcome = self.node.dispatcher.call(RequestContext(api_key, version, 7, None, Session(LISTENER, ("::1", 1))), request)
        if isinstance(outcome, Reply):
            if not outcome.done:
                return outcome
            outcome = outcome.response
        assert response_encoder(api_key, version)(7, outcome)
        return outcome

    def fetch(self, offset=0, epoch=0, *, leader_epoch=None, max_wait_ms=0, **what):
        """What is answered of the metadata log, or the Reply."""
        response = self.ask(ApiKey.FETCH, self.fetch_request(offset, epoch, leader_epoch, max_wait_ms, **what))
        return response if isinstance(response, Reply) else response.responses[0].partitions[0]

    def fetch_request(self, offset, epoch, leader_epoch=None, max_wait_ms=0, cluster_id=None, high_watermark=2**62):
        partition = fetch.FetchPartition(
            current_leader_epoch=self.node.leader.epoch if leader_epoch is None else leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=epoch,
            high_watermark=high_watermark,
            replica_directory_id=UUID(int=77),
        )
        return fetch.FetchRequest(
            cluster_id=cluster_id,
            max_wait_ms=max_wait_ms,
            replica_state=fetch.ReplicaState(replica_id=9),
            topics=[fetch.FetchTopic(topic_id=METADATA_ID, topic="__cluster_metadata", partitions=[partition])],
        )

    def fetch_snapshot(self, end_offset, epoch, position=0, max_bytes=1 << 20):
        asked = fetch_snapshot.RequestPartitionSnapshot(
            current_leader_epoch=self.node.leader.epoch,
            snapshot_id=fetch_snapshot.RequestSnapshotId(end_offset, epoch),
            position=position,
        )
        topic = fetch_snapshot.RequestTopicSnapshot(name="__cluster_metadata", partitions=[asked])
        response = self.ask(ApiKey.FETCH_SNAPSHOT, fetch_snapshot.FetchSnapshotRequest(max_bytes=max_bytes, topics=[topic]))
        return response.topics[0].partitions[0]
