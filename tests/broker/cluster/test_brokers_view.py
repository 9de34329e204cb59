"""What leaders know of other brokers is what the image has of them."""

from uuid import UUID

import pytest

from odradek.broker.replica.partitions import Partitions
from odradek.broker.replica.replicated_roles import BrokersView
from odradek.controller.metadata.cluster_view import Cluster
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records.nodes import BrokerRegistrationChangeRecord
from odradek.timing.clock import VirtualClock
from tests.broker.cluster.images import image_of, registration, topic_id_of

ME, OTHER, FENCED = 1, 2, 3


@pytest.fixture
def image():
    image = image_of({"t": [OTHER]}, brokers=(ME, OTHER))
    image.replay([registration(FENCED, fenced=True)])
    return image


@pytest.fixture
def view(image):
    return BrokersView(
        image,
        node_id=ME,
        own_epoch=lambda: 77,
        listener_name="PLAINTEXT",
        max_lag_ms=1000,
        clock=VirtualClock(),
        alter_partitions=None,
    )


def test_a_broker_that_may_be_in_sync_has_an_epoch(view, image):
    assert [view.broker_epoch(node_id) for node_id in (ME, OTHER, FENCED, 9)] == [77, 10, None, None]
    image.replay([BrokerRegistrationChangeRecord(broker_id=OTHER, broker_epoch=10, in_controlled_shutdown=1)])
    assert view.broker_epoch(OTHER) is None


def test_a_broker_that_is_alive_has_an_address(view):
    assert [view.address_of(node_id) for node_id in (OTHER, FENCED, 9)] == [("broker-2", 9002), None, None]


def test_a_partition_that_other_brokers_have_is_not_unknown_here(image):
    known = Partitions()
    known.is_elsewhere = Cluster(image, ME).has_partition
    names = ("t", topic_id_of(1).bytes, topic_id_of(1))
    assert [known.missing(name, 0).code for name in names] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3
    unknown = [known.missing(name, 1).code for name in names] + [known.missing("u", 0).code, known.missing(UUID(int=9), 0).code]
    by_id = ErrorCode.UNKNOWN_TOPIC_ID
    assert known.missing(None, 0).code == by_id
    assert unknown == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, by_id, by_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, by_id]
    with pytest.raises(KafkaError) as refused:
        known.require("t", 0)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
