from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask, create, make_broker

M = messages(ApiKey.CREATE_PARTITIONS)


def grow(broker, name, count, assignments=None, *, validate_only=False):
    if assignments is not None:
        assignments = [M.CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    topics = [M.CreatePartitionsTopic(name=name, count=count, assignments=assignments)]
    (result,) = ask(broker, ApiKey.CREATE_PARTITIONS, topics=topics, validate_only=validate_only).results
    return result


def test_a_topic_grows(core):
    topic = create(core, "t")
    assert grow(core, "t", 3, [(1,), (1,)]).error_code == ErrorCode.NONE
    assert len(topic.partitions) == 3
    assert ("t", 2) in core.log_manager.logs


def test_validate_only_adds_nothing(core):
    topic = create(core, "t")
    assert grow(core, "t", 3, validate_only=True).error_code == ErrorCode.NONE
    assert len(topic.partitions) == 1


def test_a_topic_that_is_not_there_cannot_grow():
    result = grow(make_broker(), "t", 3)
    assert (result.error_code, result.error_message) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
