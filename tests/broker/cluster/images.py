"""Metadata images of topics whose partitions have leaders."""

from uuid import UUID

from odradek.controller.metadata.image import MetadataImage
from odradek.protocol.metadata_records import PartitionRecord, TopicRecord
from odradek.protocol.metadata_records.nodes import NodeEndpoint, RegisterBrokerRecord


def topic_id_of(number):
    return UUID(int=number)


def image_of(leaders, replicas=(1, 2, 3), brokers=()):
    """``leaders`` are node ids by topic, for each of its partitions; the first topic has id 1. ``brokers`` have PLAINTEXT."""
    image = MetadataImage()
    for node_id in brokers:
        image.replay([registration(node_id)])
    for number, (name, ids) in enumerate(leaders.items(), 1):
        image.replay([TopicRecord(name=name, topic_id=topic_id_of(number))])
        image.replay([partition(topic_id_of(number), index, leader, replicas) for index, leader in enumerate(ids)])
    return image


def partition(topic_id, index, leader, replicas=(1, 2, 3), *, epoch=1):
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=replicas,
        removing_replicas=(),
        adding_replicas=(),
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=epoch,
        directories=(),
    )


def registration(node_id, *, fenced=False, broker_epoch=10):
    return RegisterBrokerRecord(
        broker_id=node_id,
        incarnation_id=UUID(int=node_id),
        broker_epoch=broker_epoch,
        end_points=(NodeEndpoint(name="PLAINTEXT", host=f"broker-{node_id}", port=9000 + node_id, security_protocol=0),),
        features=(),
        rack=f"rack-{node_id}",
        fenced=fenced,
        in_controlled_shutdown=False,
    )
