import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask, create

REQUEST = messages(ApiKey.DESCRIBE_QUORUM).classes["request"]


def describe(broker, topic, partition):
    partitions = [REQUEST["PartitionData"](partition_index=partition)]
    return ask(broker, ApiKey.DESCRIBE_QUORUM, topics=[REQUEST["TopicData"](topic_name=topic, partitions=partitions)])


def test_the_broker_is_leader_and_only_voter(core):
    create(core, "t")
    response = describe(core, "__cluster_metadata", 0)
    ((quorum,),) = (topic.partitions for topic in response.topics)
    assert (response.error_code, quorum.error_code, quorum.leader_id) == (ErrorCode.NONE, ErrorCode.NONE, 1)
    assert quorum.high_watermark == core.controller.log_end_offset > 1
    assert [(voter.replica_id, voter.log_end_offset) for voter in quorum.current_voters] == [(1, quorum.high_watermark)]
    assert list(quorum.observers) == []
    assert [(node.node_id, node.listeners[0].port) for node in response.nodes] == [(1, 9999)]


@pytest.mark.parametrize(("topic", "partition"), [("__cluster_metadata", 1), ("t", 0)])
def test_nothing_else_has_a_quorum(core, topic, partition):
    create(core, "t")
    response = describe(core, topic, partition)
    ((answer,),) = (topic.partitions for topic in response.topics)
    assert (answer.partition_index, answer.error_code) == (partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert list(response.nodes) == []
