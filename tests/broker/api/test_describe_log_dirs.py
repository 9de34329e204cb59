from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask, create, make_broker
from tests.broker.slow_broker import slow_broker

M = messages(ApiKey.DESCRIBE_LOG_DIRS)


def describe(broker, topics):
    (directory,) = ask(broker, ApiKey.DESCRIBE_LOG_DIRS, topics=topics).results
    assert (directory.error_code, directory.log_dir) == (ErrorCode.NONE, broker.log_manager.directories.metadata.path)
    return {
        (topic.name, partition.partition_index): partition.partition_size
        for topic in directory.topics
        for partition in topic.partitions
    }


def test_all_partitions_are_told_with_their_sizes(core):
    create(core, "t", 2, records=3)
    create(core, "u")
    sizes = describe(core, None)
    assert set(sizes) == {("t", 0), ("t", 1), ("u", 0)}
    assert (sizes["t", 0], sizes["t", 1]) == (core.log_manager.logs["t", 0].size_bytes, 0)
    assert sizes["t", 0] > 0


def test_of_partitions_asked_for_those_are_told_that_are_there(core):
    create(core, "t", 2)
    asked = [M.DescribableLogDirTopic(topic="t", partitions=(1, 9)), M.DescribableLogDirTopic(topic="nope", partitions=(0,))]
    assert set(describe(core, asked)) == {("t", 1)}


def test_no_topics_are_no_partitions(core):
    create(core, "t")
    assert describe(core, []) == {}


def test_a_directory_on_no_volume_has_no_size():
    (directory,) = ask(make_broker(), ApiKey.DESCRIBE_LOG_DIRS, topics=None).results
    assert (directory.total_bytes, directory.usable_bytes) == (-1, -1)


def test_a_volume_has_room(core, tmp_path):
    core.log_manager.directories.metadata.path = str(tmp_path)
    (directory,) = ask(core, ApiKey.DESCRIBE_LOG_DIRS, topics=None).results
    assert 0 <= directory.usable_bytes <= directory.total_bytes


async def test_many_partitions_are_told_over_several_turns_but_one_deleted_meanwhile():
    async with slow_broker() as broker:
        topics = CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=1_000, replication_factor=1) for name in ("t", "u")]
        )
        await broker.ask(ApiKey.CREATE_TOPICS, topics, 7)
        answer = broker.send(ApiKey.DESCRIBE_LOG_DIRS, M.DescribeLogDirsRequest(topics=None), 4)
        assert not answer.done
        broker.core.log_manager.delete("u", 999)
        (directory,) = (await broker.wait(answer)).results
    told = {topic.name: len(topic.partitions) for topic in directory.topics}
    assert told == {"t": 1_000, "u": 999}
