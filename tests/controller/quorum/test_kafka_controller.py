"""An observer of a controller of Apache Kafka's own."""

from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from tests.campaigns.kafka_tools.dump_log_segments import dump
from tests.campaigns.kafka_tools.kafka_controllers import KafkaControllers
from tests.controller.quorum.real_quorum import BROKER_ID, METADATA_VERSION, RealQuorum

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("kafka-clusters"), pytest.mark.timeout(240)]
SETTINGS = {
    "broker.session.timeout.ms": "600000",
    # Kafka's smallest; NoOp records are written for want of others.
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "metadata.max.idle.interval.ms": "200",
}


@pytest.fixture(scope="module")
def controllers(tmp_path_factory):
    made = KafkaControllers(tmp_path_factory.mktemp("controllers"), 1, SETTINGS)
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def quorum(controllers):
    made = RealQuorum(controllers)
    await made.register()
    yield made
    made.close()


@pytest_asyncio.fixture(loop_scope="module")
async def names(quorum, new_name):
    """Topics: two that stay, with a config and partitions, and one that is deleted."""
    kept, gone = [new_name(), new_name()], new_name()
    await quorum.create_topics([*kept, gone], partitions=3)
    await quorum.set_config(2, kept[0], "retention.ms", "1234")
    await quorum.delete_topics([gone])
    return kept


async def test_the_copy_is_the_controllers_log_and_dumps_as_such(quorum, names, tmp_path):
    async with quorum.observing(tmp_path) as observed:
        await observed.has_applied(await quorum.committed_offset())
        ours = observed.data
        assert quorum.controllers.batches(1, observed.log.start_offset).startswith(ours)
        image = observed.image
        segments = sorted(tmp_path.glob("*/*.log"))
        dumped = dump([*sorted(tmp_path.glob("*/*.checkpoint"))[-1:], *segments], "--cluster-metadata-decoder")
    payloads = [record.payload for file in dumped.values() for record in file.records if record.payload]
    topics, partitions = {}, {}
    for each in payloads:
        data = each["data"]
        if each["type"] == "TOPIC_RECORD":
            topics[data["topicId"]] = data["name"]
        elif each["type"] == "REMOVE_TOPIC_RECORD":
            del topics[data["topicId"]]
        elif each["type"] == "PARTITION_RECORD":
            partitions[data["topicId"], data["partitionId"]] = data["leader"], data["isr"]
    assert set(names) <= set(topics.values()) == set(image.topics)
    told = {(topics[topic_id], number): found for (topic_id, number), found in partitions.items() if topic_id in topics}
    assert told == {
        (topic.name, partition.partition_id): (partition.leader, list(partition.isr)) for topic, partition in image.partitions()
    }
    assert image.configs(2, names[0]) == {"retention.ms": "1234"}
    assert image.features == {"metadata.version": METADATA_VERSION}
    assert list(image.kept.brokers) == [BROKER_ID]


async def test_the_controller_describes_the_observer(quorum, tmp_path):
    directory_id = uuid4()
    async with quorum.observing(tmp_path, directory_id=directory_id) as observed:
        offset = await quorum.committed_offset()
        await observed.has_applied(offset)

        async def is_described():
            _, partition = await quorum.active()
            found = {(each.replica_id, each.replica_directory_id): each.log_end_offset for each in partition.observers}
            return found.get((BROKER_ID, directory_id), -1) >= offset

        await observed.until(lambda: observed.log.end_offset > offset)
        while not await is_described():
            pass
        assert observed.observer.leader.node_id == 1


async def test_changes_are_told_as_they_come(quorum, new_name, tmp_path):
    async with quorum.observing(tmp_path) as observed:
        await observed.has_applied(await quorum.committed_offset())
        del observed.told.deltas[:]
        name = new_name()
        created = await quorum.create_topics([name], partitions=2)
        await observed.until(lambda: name in observed.image.topics)
        await quorum.delete_topics([name])
        await observed.until(lambda: name not in observed.image.topics)
        [first, second] = observed.told.deltas
        [[topic_delta], [deleted]] = list(first.topics.values()), second.deleted_topics
        assert (topic_delta.topic.topic_id, list(topic_delta.created)) == (created.topics[0].topic_id, [0, 1])
        assert deleted is topic_delta.topic


async def test_after_a_kill_it_goes_on(quorum, names, new_name, tmp_path):
    async with quorum.observing(tmp_path) as observed:
        await observed.has_applied(await quorum.committed_offset())
        end_offset = observed.log.end_offset
    later = new_name()
    await quorum.create_topics([later])
    async with quorum.observing(tmp_path) as observed:
        assert observed.log.end_offset == end_offset
        await observed.has_applied(await quorum.committed_offset())
        assert {*names, later} <= observed.image.topics.keys()
        assert quorum.controllers.batches(1, observed.log.start_offset).startswith(observed.data)


async def test_own_snapshots_are_written_and_started_from(quorum, names, tmp_path):
    settings = {"metadata.log.max.record.bytes.between.snapshots": "100", "metadata.max.retention.bytes": "1"}
    async with quorum.observing(tmp_path, settings=settings) as observed:
        await observed.has_applied(await quorum.committed_offset())
        end_offset = observed.log.end_offset
        await observed.until(lambda: max(observed.log.snapshots.ids, default=(0, 0))[0] > end_offset)
        assert len(observed.log.snapshots.ids) == 1
        snapshot = observed.log.newest_snapshot
        topics = {topic.topic_id: topic.partitions for topic in observed.image.topics.values()}
    [checkpoint] = tmp_path.glob(f"*/{snapshot.name}")
    [file] = dump([checkpoint], "--cluster-metadata-decoder").values()
    assert (file.records[0].marker, file.records[-1].marker) == ("SnapshotHeader", "SnapshotFooter")
    async with quorum.observing(tmp_path) as observed:
        await observed.has_applied(snapshot.end_offset)
        assert {topic.topic_id: topic.partitions for topic in observed.image.topics.values()} == topics


async def test_an_empty_observer_fetches_the_snapshot_of_a_log_that_begins_later(quorum, controllers, names, new_name, tmp_path):
    async with quorum.observing(tmp_path / "before") as before:
        await before.has_applied(await quorum.committed_offset())
        await before.until(lambda: any(controllers.log_dir(1).glob("*.checkpoint")))
        topics = dict(before.image.topics_by_id)
    controllers.kill9(1)
    controllers.lose_segments(1)
    controllers.start()
    later = new_name()
    await quorum.create_topics([later])
    async with quorum.observing(tmp_path / "after", fetch_snapshot_max_bytes=1000) as observed:
        await observed.has_applied(await quorum.committed_offset())
        assert observed.log.start_offset > 0
        name = observed.log.snapshots.ids[0].name
        assert (tmp_path / "after" / "__cluster_metadata-0" / name).read_bytes() == (controllers.log_dir(1) / name).read_bytes()
        assert quorum.controllers.batches(1, observed.log.start_offset).startswith(observed.data)
        assert later in observed.image.topics
        assert isinstance(next(iter(topics)), UUID)
