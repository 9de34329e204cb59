from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from tests.broker.api.bed import ask, create, make_broker
from tests.cases import each_case

M = messages(ApiKey.ALTER_PARTITION_REASSIGNMENTS)


@each_case(
    ("topic", "partition", "replicas", "code"),
    [
        ("t", 0, (1,), ErrorCode.NONE),
        ("t", 0, (2,), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, (1, 1), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, (), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 9, (1,), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nope", 0, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_replicas_stay_where_they_are(topic, partition, replicas, code):
    broker = make_broker()
    create(broker, "t")
    asked = M.ReassignableTopic(name=topic, partitions=[M.ReassignablePartition(partition_index=partition, replicas=replicas)])
    response = ask(broker, ApiKey.ALTER_PARTITION_REASSIGNMENTS, topics=[asked], allow_replication_factor_change=False)
    assert (response.error_code, response.allow_replication_factor_change) == (ErrorCode.NONE, False)
    (answer,) = response.responses
    assert [(result.partition_index, result.error_code) for result in answer.partitions] == [(partition, code)]
