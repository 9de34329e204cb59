"""What is told of the brokers and partitions of a cluster of several."""

from uuid import UUID, uuid4

import pytest

from odradek.controller.metadata.cluster_view import Cluster, ClusterNode
from odradek.controller.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.hashing import partition_for
from odradek.protocol.metadata_records import PartitionRecord, TopicRecord
from odradek.protocol.metadata_records.nodes import BrokerRegistrationChangeRecord, NodeEndpoint, RegisterBrokerRecord

NEWEST = 13
DIRECTORY = uuid4()
UNASSIGNED, LOST = UUID(int=1), UUID(int=2)


def broker(node_id, listeners=("PLAINTEXT",), *, fenced=False, directories=(DIRECTORY,)):
    return RegisterBrokerRecord(
        broker_id=node_id,
        incarnation_id=uuid4(),
        broker_epoch=1,
        end_points=tuple(
            NodeEndpoint(name=name, host=f"host-{node_id}", port=9000 + place, security_protocol=0)
            for place, name in enumerate(listeners)
        ),
        features=(),
        rack=f"rack-{node_id}",
        fenced=fenced,
        log_dirs=directories,
    )


def cluster_of(*brokers, leader=1, replicas=(1, 2), isr=None, directories=None, node_id=1):
    """A cluster with the topic t of one partition."""
    image = MetadataImage()
    topic_id = uuid4()
    partition = PartitionRecord(
        partition_id=0,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr or replicas,
        leader=leader,
        leader_epoch=4,
        partition_epoch=6,
        directories=directories or (DIRECTORY,) * len(replicas),
    )
    image.replay([*brokers, TopicRecord(name="t", topic_id=topic_id), partition])
    return Cluster(image, node_id), image


def state(cluster, image, listener="PLAINTEXT", version=NEWEST):
    return cluster.partition_state(image.topics["t"], 0, listener, version)


def test_clients_are_told_of_the_brokers_that_have_their_listener_and_are_not_fenced():
    cluster, _ = cluster_of(broker(2, ("PLAINTEXT", "OTHER")), broker(1), broker(3, fenced=True))
    assert cluster.nodes("PLAINTEXT") == [ClusterNode(1, "host-1", 9000, "rack-1"), ClusterNode(2, "host-2", 9000, "rack-2")]
    assert cluster.nodes("OTHER") == [ClusterNode(2, "host-2", 9001, "rack-2")]
    assert cluster.nodes("PLAINTEXT", are_fenced=True) == [ClusterNode(3, "host-3", 9000, "rack-3", is_fenced=True)]


def test_a_partition_has_the_leader_and_the_in_sync_replicas_that_the_controller_chose():
    cluster, image = cluster_of(broker(1), broker(2), leader=2, isr=(2,))
    assert tuple(state(cluster, image)) == (ErrorCode.NONE, 0, 2, 4, (1, 2), (2,), [])


def test_replicas_are_offline_on_brokers_that_are_fenced_or_unknown_or_have_lost_the_directory():
    cluster, image = cluster_of(
        broker(1),
        broker(2, fenced=True),
        broker(4, directories=(uuid4(),)),
        broker(5),
        broker(6),
        broker(7, directories=()),
        replicas=(1, 2, 3, 4, 5, 6, 7),
        directories=(DIRECTORY, DIRECTORY, DIRECTORY, DIRECTORY, LOST, UNASSIGNED, DIRECTORY),
    )
    assert state(cluster, image).offline_replicas == [2, 3, 4, 5]


def test_a_partition_whose_leader_is_not_registered_has_none():
    cluster, image = cluster_of(broker(1), broker(2), leader=-1)
    assert state(cluster, image)[:4] == (ErrorCode.LEADER_NOT_AVAILABLE, 0, -1, 4)


@pytest.mark.parametrize(("version", "error"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)])
def test_a_leader_without_the_clients_listener_is_told_by_an_error_of_its_own_since_version_6(version, error):
    cluster, image = cluster_of(broker(1), broker(2, ("OTHER",)), leader=2)
    assert state(cluster, image, version=version)[:3] == (error, 0, -1)


def test_version_0_is_told_of_replicas_that_are_alive_only():
    cluster, image = cluster_of(broker(1), broker(2, fenced=True))
    told = state(cluster, image, version=0)
    assert (told.error_code, told.leader_id, told.replicas, told.isr) == (ErrorCode.REPLICA_NOT_AVAILABLE, 1, (1,), (1,))


def test_the_leader_of_an_ids_partition_coordinates_it_while_it_is_alive():
    cluster, image = cluster_of(broker(1), broker(2), leader=2)
    topic = image.topics["t"]
    other = PartitionRecord(
        partition_id=1, topic_id=topic.topic_id, replicas=(1,), isr=(1,), leader=1, directories=(DIRECTORY,), leader_epoch=0
    )
    image.replay([other])
    by_partition = {partition_for(name, 2): name for name in ("a", "b", "c")}
    assert cluster.coordinator("t", by_partition[0], "PLAINTEXT").node_id == 2
    assert cluster.coordinator("t", by_partition[1], "PLAINTEXT").node_id == 1
    image.replay([BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=1, fenced=1)])
    assert cluster.coordinator("t", by_partition[0], "PLAINTEXT") is None
    assert cluster.coordinator("unknown", "a", "PLAINTEXT") is None


def test_the_controller_is_to_be_asked_through_this_broker_unless_it_is_fenced():
    assert cluster_of(broker(1), broker(2), node_id=2)[0].controller_id == 2
    assert cluster_of(broker(1), broker(2, fenced=True), node_id=2)[0].controller_id == 1
    assert cluster_of(broker(1, fenced=True), node_id=2)[0].controller_id == -1


def test_a_broker_that_leads_what_it_cannot_serve_says_that_there_is_no_leader():
    _, image = cluster_of(broker(1), broker(2))
    served, unserved = (state(Cluster(image, 1, lambda *_, serves=serves: serves), image) for serves in (True, False))
    assert (served.error_code, served.leader_id, served.offline_replicas) == (ErrorCode.NONE, 1, [])
    assert (unserved.error_code, unserved.leader_id, unserved.offline_replicas) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1])
    assert state(Cluster(image, 2, lambda *_: False), image).leader_id == 1
