"""A snapshot that replaces the image: the image becomes the snapshot's, and who mirrors the image by deltas keeps in step."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from odradek.controller.metadata.loader import difference
from odradek.controller.metadata.snapshot_generator import records_of
from odradek.protocol.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from odradek.protocol.metadata_records.nodes import RegisterBrokerRecord, UnregisterBrokerRecord
from odradek.protocol.metadata_records.partition_changes import PartitionChangeRecord
from odradek.protocol.metadata_records.security import RemoveAccessControlEntryRecord
from tests.controller.metadata.test_delta import right
from tests.controller.metadata.test_snapshots import state

# (kind, which, how)
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["topic", "partition", "leader", "remove", "config", "feature", "broker", "unregister", "ids", "right"]),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    max_size=12,
)


def records(  # noqa: PLR0911  one for each kind
    image, kind, which, how, number
):
    """The records of a change, of which ``number`` tells ids apart; none where it makes no sense."""
    topic = image.topics.get(f"t.{which}")
    broker = image.kept.brokers.get(which)
    match kind:
        case "topic" if topic is None:
            return [TopicRecord(name=f"t.{which}", topic_id=UUID(int=number + 1))]
        case "partition" if topic is not None:
            index = len(topic.partitions)
            return [
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic.topic_id,
                    replicas=(1,),
                    isr=(1,),
                    leader=1,
                    leader_epoch=0,
                    partition_epoch=0,
                )
            ]
        case "leader" if topic is not None and topic.partitions:
            return [PartitionChangeRecord(partition_id=0, topic_id=topic.topic_id, leader=how)]
        case "remove" if topic is not None:
            return [RemoveTopicRecord(topic_id=topic.topic_id)]
        case "config":
            resource = (TOPIC_RESOURCE, f"t.{which}") if topic is not None else (BROKER_RESOURCE, str(which))
            value = None if how == 0 else str(how)
            return [ConfigRecord(resource_type=resource[0], resource_name=resource[1], name="x", value=value)]
        case "feature":
            return [FeatureLevelRecord(name=f"f{which}", feature_level=how)]
        case "broker":
            registered = RegisterBrokerRecord(
                broker_id=which, incarnation_id=UUID(int=how), broker_epoch=how, end_points=(), features=(), rack=None
            )
            return [registered]
        case "unregister" if broker is not None:
            return [UnregisterBrokerRecord(broker_id=which, broker_epoch=broker.broker_epoch)]
        case "right":
            return [right(which, operation=how + 3) if how else RemoveAccessControlEntryRecord(id=UUID(int=which))]
        case "ids":
            return [ProducerIdsRecord(broker_id=1, next_producer_id=1000 * (how + 1))]
    return []


def made(changes):
    image = MetadataImage()
    for number, change in enumerate(changes):
        image.replay(records(image, *change, number))
    return image


class Mirror:
    """What a publisher makes of deltas."""

    def __init__(self):
        self.topics = {}
        self.configs = {}
        self.features = {}
        self.brokers = {}
        self.acls = {}
        self.next_producer_id = 0

    def publish(self, delta, image):
        for topic in delta.deleted_topics:
            del self.topics[topic.topic_id]
            self.configs.pop((TOPIC_RESOURCE, topic.name), None)
        for topic_id, (topic, is_new, created, changed) in delta.topics.items():
            assert is_new == (topic_id not in self.topics)
            assert image.topics_by_id[topic_id] is topic
            partitions = self.topics.setdefault(topic_id, (topic.name, {}))[1]
            assert not created.keys() & partitions.keys()
            assert changed.keys() <= partitions.keys()
            partitions.update({**created, **changed})
        for key in delta.configs:
            self.configs[key] = dict(image.configs(*key))
        for name, level in delta.features.items():
            self.features[name] = level
        for broker_id, broker in delta.brokers.items():
            if broker is None:
                del self.brokers[broker_id]
            else:
                self.brokers[broker_id] = broker
        for acl_id, record in delta.acls.items():
            self.acls.pop(acl_id, None)
            if record is not None:
                self.acls[acl_id] = record
        if delta.next_producer_id is not None:
            self.next_producer_id = delta.next_producer_id

    def state(self):
        return (
            self.topics,
            {key: found for key, found in self.configs.items() if found},
            {name: level for name, level in self.features.items() if level},
            self.brokers,
            self.acls,
            self.next_producer_id,
        )


def mirror_of(image):
    mirror = Mirror()
    mirror.publish(difference(MetadataImage(), image), image)
    return mirror


@given(CHANGES, CHANGES)
def test_the_image_becomes_another_and_a_mirror_keeps_in_step(before, after):
    image, snapshot = made(before), MetadataImage()
    mirror = mirror_of(image)
    known = dict(image.topics_by_id)
    snapshot.replay(list(records_of(made(before + after))))
    delta = difference(image, snapshot)
    image.become(snapshot)
    mirror.publish(delta, image)
    expected = made(before + after)
    assert state(image) == state(expected)
    assert mirror.state() == mirror_of(expected).state()
    assert all(image.topics_by_id[topic_id] is topic for topic_id, topic in known.items() if topic_id in image.topics_by_id)
    assert known.keys() - image.topics_by_id.keys() <= image.removed_topic_ids
    colliding = {name: image.colliding_topic(name.replace(".", "_")) for name in image.topics}
    assert colliding == {name: name for name in image.topics}


def test_a_topic_made_anew_is_told_the_overrides_it_shares_with_the_deleted_one():
    before = [("topic", 0, 0), ("config", 0, 1)]
    delta = difference(made(before), made([*before, ("remove", 0, 0), *before]))
    assert list(delta.configs) == [(TOPIC_RESOURCE, "t.0")]


@given(CHANGES)
def test_an_equal_image_makes_no_difference(changes):
    assert difference(made(changes), made(changes)).is_empty


def test_replaying_goes_on_in_an_image_that_was_replaced():
    image = made([("topic", 0, 0), ("partition", 0, 0)])
    image.become(made([("topic", 0, 0), ("partition", 0, 0), ("topic", 1, 0), ("config", 1, 2)]))
    delta = image.replay(records(image, "remove", 1, 0, 9))
    assert [topic.name for topic in delta.deleted_topics] == ["t.1"]
    assert (list(image.topics), list(image.topics_by_id)) == (["t.0"], [UUID(int=1)])
    assert list(image.overrides) == []
