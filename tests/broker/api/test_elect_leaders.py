import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask, create

M = messages(ApiKey.ELECT_LEADERS)


def elect(broker, topic, partitions, election_type=0):
    asked = None if topic is None else [M.TopicPartitions(topic=topic, partitions=partitions)]
    answer = ask(broker, ApiKey.ELECT_LEADERS, election_type=election_type, topic_partitions=asked)
    return answer.error_code, [
        (result.topic, [(partition.partition_id, partition.error_code) for partition in result.partition_result])
        for result in answer.replica_election_results
    ]


@pytest.mark.parametrize("election_type", [0, 1])
def test_no_partition_needs_an_election(core, election_type):
    create(core, "t", 2)
    assert elect(core, "t", (0, 1), election_type) == (
        ErrorCode.NONE,
        [("t", [(0, ErrorCode.ELECTION_NOT_NEEDED), (1, ErrorCode.ELECTION_NOT_NEEDED)])],
    )


@pytest.mark.parametrize(("topic", "partition"), [("t", 1), ("nope", 0)])
def test_a_partition_that_is_not_there_is_unknown(core, topic, partition):
    create(core, "t")
    assert elect(core, topic, (partition,)) == (ErrorCode.NONE, [(topic, [(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)])])


def test_an_unknown_election_is_invalid_for_all(core):
    create(core, "t")
    assert elect(core, "t", (0,), 5) == (ErrorCode.INVALID_REQUEST, [("t", [(0, ErrorCode.INVALID_REQUEST)])])


def test_of_all_partitions_none_is_told_that_has_its_leader(core):
    create(core, "t", 2)
    assert elect(core, None, ()) == (ErrorCode.NONE, [("t", [])])
