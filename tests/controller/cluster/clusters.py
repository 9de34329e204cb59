"""A cluster's controller on a virtual clock and a log in memory, and brokers that ask it."""

from random import Random
from uuid import UUID

from odradek.common.config import load
from odradek.controller.cluster.cluster_controller import ClusterController
from odradek.controller.metadata.decisions import NewTopic
from odradek.controller.metadata.features import SUPPORTED_FEATURES
from odradek.controller.metadata.writer import ControllerHost
from odradek.protocol.message_types.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from odradek.protocol.message_types.assign_replicas_to_dirs import AssignReplicasToDirsRequest, RequestDirectoryData
from odradek.protocol.message_types.assign_replicas_to_dirs import RequestPartitionData as RequestedPartition
from odradek.protocol.message_types.assign_replicas_to_dirs import RequestTopicData as RequestedTopic
from odradek.protocol.message_types.broker_heartbeat import BrokerHeartbeatRequest
from odradek.protocol.message_types.broker_registration import BrokerRegistrationRequest, Feature, Listener
from odradek.timing.clock import VirtualClock
from odradek.timing.timer import Timer
from tests.controller.metadata.doubles import RecordedLog, done

CLUSTER_ID = "the-cluster"
CONTROLLER_ID = 100
FEATURES = [Feature(name, *levels) for name, levels in SUPPORTED_FEATURES.items()]
SESSION_MS = 9000


def directory(broker_id, number=0):
    return UUID(int=(broker_id + 1) * 1000 + number)


class Cluster:
    """``controller`` and its log. Incarnations, directories and topic ids count up."""

    def __init__(self, settings=None, log=None, seed=1):
        self.log = log or RecordedLog()
        self.clock = VirtualClock()
        self.timer = Timer(self.clock)
        self.incarnations = iter(range(10**6, 10**9))
        topic_ids = iter(range(5000 + self.log.end_offset, 10**9))
        self.config = load("".join(f"{name}={value}\n" for name, value in (settings or {}).items()))
        self.controller = ClusterController(
            self.log,
            ControllerHost(self.config, self.clock, lambda: UUID(int=next(topic_ids)), Random(seed)),
            node_id=CONTROLLER_ID,
            cluster_id=CLUSTER_ID,
        )
        self.controller.start(self.timer)

    @property
    def image(self):
        return self.controller.image

    @property
    def end_offset(self):
        return self.log.end_offset

    def new_records(self, ask):
        """The records that ``ask`` has led to."""
        known = len(self.log.batches)
        ask()
        return [] if len(self.log.batches) == known else self.log.last_records

    def registration(self, broker_id, **what):
        asked = {
            "broker_id": broker_id,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": UUID(int=next(self.incarnations)),
            "listeners": [Listener("PLAINTEXT", "localhost", 9000 + broker_id, 0)],
            "features": FEATURES,
            "log_dirs": [directory(broker_id)],
        }
        return BrokerRegistrationRequest(**asked | what)

    def ask_to_register(self, broker_id, version=4, **what):
        return done(self.controller.register_broker(self.registration(broker_id, **what), version))

    def register(self, *broker_ids, **what):
        """Fenced brokers; the last one's epoch."""
        for broker_id in broker_ids:
            response = self.ask_to_register(broker_id, **what)
            assert response.error_code == 0
        return response.broker_epoch

    def epoch(self, broker_id):
        """That of a broker's registration, -1 where there is none."""
        broker = self.image.kept.brokers.get(broker_id)
        return -1 if broker is None else broker.broker_epoch

    def heartbeat(self, broker_id, **what):
        asked = {"broker_id": broker_id, "broker_epoch": self.epoch(broker_id), "current_metadata_offset": self.end_offset}
        return done(self.controller.heartbeat(BrokerHeartbeatRequest(**asked | what)))

    def unfence(self, *broker_ids):
        for broker_id in broker_ids:
            assert not self.heartbeat(broker_id).is_fenced

    def start(self, *broker_ids, **what):
        """Brokers that are registered and unfenced."""
        self.register(*broker_ids, **what)
        self.unfence(*broker_ids)

    def expire(self, broker_id):
        """Let the session of one broker end, while the others live."""
        others = [each for each, broker in self.image.kept.brokers.items() if each != broker_id and not broker.fenced]
        for _ in range(4):
            self.clock.advance(SESSION_MS / 3)
            for other in others:
                self.heartbeat(other)
        assert self.image.kept.brokers[broker_id].fenced

    def live(self, duration_ms, *broker_ids):
        """Let time pass in which these brokers send heartbeats."""
        for _ in range(int(duration_ms / SESSION_MS * 2) + 1):
            self.clock.advance(SESSION_MS / 2)
            for broker_id in broker_ids:
                self.heartbeat(broker_id)

    def create(self, name="t", *assignments, **configs):
        [result] = done(
            self.controller.create_topics(
                [
                    NewTopic(
                        name=name,
                        assignments=list(enumerate(assignments)),
                        configs=[(key.replace("_", "."), value) for key, value in configs.items()],
                    )
                ]
            )
        )
        assert result.error is None, result.error
        return self.image.topics[name]

    def partition(self, name="t", index=0):
        return self.image.topics[name].partitions[index]

    def state(self, name="t", index=0):
        """(leader, leader epoch, in-sync replicas, eligible replicas, partition epoch)."""
        partition = self.partition(name, index)
        elr = partition.eligible_leader_replicas or ()
        return partition.leader, partition.leader_epoch, partition.isr, elr, partition.partition_epoch

    def propose(self, isr, name="t", index=0, *, leader=None, version=3, **what):
        """AlterPartition of the leader; the answer for the partition."""
        partition = self.partition(name, index)
        leader = partition.leader if leader is None else leader
        brokers = self.image.kept.brokers
        states = [BrokerState(each, brokers[each].broker_epoch if each in brokers else -1) for each in isr]
        asked = {
            "partition_index": index,
            "leader_epoch": partition.leader_epoch,
            "new_isr_with_epochs": states,
            "leader_recovery_state": 0,
            "partition_epoch": partition.partition_epoch,
        }
        topic = RequestTopicData(partition.topic_id, [RequestPartitionData(**asked | what)])
        response = done(self.controller.alter_partition(AlterPartitionRequest(leader, self.epoch(leader), [topic]), version))
        assert response.error_code == 0
        return response.topics[0].partitions[0]

    def place(self, broker_id, directory_id, name="t", index=0):
        """AssignReplicasToDirs; the error for the partition."""
        topic = RequestedTopic(self.image.topics[name].topic_id, [RequestedPartition(index)])
        request = AssignReplicasToDirsRequest(broker_id, self.epoch(broker_id), [RequestDirectoryData(directory_id, [topic])])
        response = done(self.controller.assign_replicas_to_dirs(request))
        assert response.error_code == 0
        return response.directories[0].topics[0].partitions[0].error_code
