"""Responses to requests that are refused as a whole: the error at the top or, where there is no place for it, at each item."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from odradek.broker.authorization.asked import Asked
from odradek.broker.quorum.forwarding_errors import error_response
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types import offset_commit as commits
from odradek.protocol.message_types import txn_offset_commit as in_transactions
from odradek.protocol.messages import messages

# Versions of JoinGroup before this one have a name where later ones have null.
_NULLABLE_PROTOCOL: Final = 7
# Refused to the cluster, as where a broker cannot reach the controller.
_BY_ITEM: Final = frozenset(
    {ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS, ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS}
)
_REASONS: Final = {ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "The client may not do this to the cluster."}


def refused(asked: Asked, code: ErrorCode) -> Any:
    """The response to ``asked`` with ``code``."""
    api_key = asked.context.api_key
    if api_key in _BY_ITEM:
        return error_response(api_key, asked.request, KafkaError(code, _REASONS[code]))
    classes = messages(api_key)
    special = _SPECIAL.get(api_key)
    fields = special(classes, asked, code) if special is not None else {}
    response = classes.response
    if "error_code" in response._fields:
        fields["error_code"] = code
    if "error_message" in response._fields:
        fields["error_message"] = _REASONS.get(code)
    return response(**fields)


def _join_group(_classes: Any, asked: Asked, _code: ErrorCode) -> dict[str, Any]:
    return {"protocol_name": "" if asked.context.version < _NULLABLE_PROTOCOL else None}


def _init_producer_id(_classes: Any, _asked: Asked, _code: ErrorCode) -> dict[str, Any]:
    return {"producer_id": -1, "producer_epoch": -1}


def offset_commit_topics(topics: Iterable[commits.OffsetCommitRequestTopic], code: ErrorCode) -> list[Any]:
    """What OffsetCommit tells of topics that are refused."""
    return [
        commits.OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[commits.OffsetCommitResponsePartition(each.partition_index, code) for each in topic.partitions],
        )
        for topic in topics
    ]


def txn_offset_commit_topics(topics: Iterable[in_transactions.TxnOffsetCommitRequestTopic], code: ErrorCode) -> list[Any]:
    """What TxnOffsetCommit tells of topics that are refused."""
    return [
        in_transactions.TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                in_transactions.TxnOffsetCommitResponsePartition(each.partition_index, code) for each in topic.partitions
            ],
        )
        for topic in topics
    ]


def _offset_commit(_classes: Any, asked: Asked, code: ErrorCode) -> dict[str, Any]:
    return {"topics": offset_commit_topics(asked.request.topics, code)}


def _txn_offset_commit(_classes: Any, asked: Asked, code: ErrorCode) -> dict[str, Any]:
    return {"topics": txn_offset_commit_topics(asked.request.topics, code)}


def _write_txn_markers(classes: Any, asked: Asked, code: ErrorCode) -> dict[str, Any]:
    markers = [
        classes.WritableTxnMarkerResult(
            producer_id=marker.producer_id,
            topics=[
                classes.WritableTxnMarkerTopicResult(
                    name=topic.name,
                    partitions=[classes.WritableTxnMarkerPartitionResult(index, code) for index in topic.partition_indexes],
                )
                for topic in marker.topics
            ],
        )
        for marker in asked.request.markers
    ]
    return {"markers": markers}


def _alter_replica_log_dirs(classes: Any, asked: Asked, code: ErrorCode) -> dict[str, Any]:
    results = [
        classes.AlterReplicaLogDirTopicResult(
            topic_name=topic.name,
            partitions=[classes.AlterReplicaLogDirPartitionResult(index, code) for index in topic.partitions],
        )
        for directory in asked.request.dirs
        for topic in directory.topics
    ]
    return {"results": results}


def _elect_leaders(classes: Any, asked: Asked, code: ErrorCode) -> dict[str, Any]:
    results = [
        classes.ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[classes.PartitionResult(index, code, _REASONS.get(code)) for index in topic.partitions],
        )
        for topic in asked.request.topic_partitions or ()
    ]
    return {"replica_election_results": results}


def _alter_partition_reassignments(classes: Any, asked: Asked, code: ErrorCode) -> dict[str, Any]:
    responses = [
        classes.ReassignableTopicResponse(
            name=topic.name,
            partitions=[
                classes.ReassignablePartitionResponse(partition.partition_index, code, _REASONS.get(code))
                for partition in topic.partitions
            ],
        )
        for topic in asked.request.topics
    ]
    return {"responses": responses}


def _list_partition_reassignments(classes: Any, asked: Asked, _code: ErrorCode) -> dict[str, Any]:
    topics = [
        classes.OngoingTopicReassignment(
            name=topic.name,
            partitions=[classes.OngoingPartitionReassignment(partition_index=index) for index in topic.partition_indexes],
        )
        for topic in asked.request.topics or ()
    ]
    return {"topics": topics}


def _describe_user_scram_credentials(classes: Any, asked: Asked, code: ErrorCode) -> dict[str, Any]:
    users = asked.request.users or ()
    result = classes.DescribeUserScramCredentialsResult
    return {"results": [result(user="", error_code=code, error_message=_REASONS.get(code)) for _ in users]}


def _describe_client_quotas(_classes: Any, _asked: Asked, _code: ErrorCode) -> dict[str, Any]:
    return {"entries": None}


_SPECIAL: Final[dict[ApiKey, Callable[[Any, Asked, ErrorCode], dict[str, Any]]]] = {
    ApiKey.JOIN_GROUP: _join_group,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.OFFSET_COMMIT: _offset_commit,
    ApiKey.TXN_OFFSET_COMMIT: _txn_offset_commit,
    ApiKey.WRITE_TXN_MARKERS: _write_txn_markers,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _alter_replica_log_dirs,
    ApiKey.ELECT_LEADERS: _elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _list_partition_reassignments,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _describe_client_quotas,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _describe_user_scram_credentials,
}
