"""AddPartitionsToTxn up to version 5. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class AddPartitionsToTxnTopic(NamedTuple):
    """A struct of the AddPartitionsToTxn request."""

    name: str = ""
    partitions: Sequence[int] = ()


class AddPartitionsToTxnTransaction(NamedTuple):
    """A struct of the AddPartitionsToTxn request."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: Sequence[AddPartitionsToTxnTopic] = ()


class AddPartitionsToTxnRequest(NamedTuple):
    """The AddPartitionsToTxn request."""

    transactions: Sequence[AddPartitionsToTxnTransaction] = ()


class AddPartitionsToTxnPartitionResult(NamedTuple):
    """A struct of the AddPartitionsToTxn response."""

    partition_index: int = 0
    partition_error_code: int = 0


class AddPartitionsToTxnTopicResult(NamedTuple):
    """A struct of the AddPartitionsToTxn response."""

    name: str = ""
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = ()


class AddPartitionsToTxnResult(NamedTuple):
    """A struct of the AddPartitionsToTxn response."""

    transactional_id: str = ""
    topic_results: Sequence[AddPartitionsToTxnTopicResult] = ()


class AddPartitionsToTxnResponse(NamedTuple):
    """The AddPartitionsToTxn response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    results_by_transaction: Sequence[AddPartitionsToTxnResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "AddPartitionsToTxnTopic": AddPartitionsToTxnTopic,
    "AddPartitionsToTxnTransaction": AddPartitionsToTxnTransaction,
    "AddPartitionsToTxnRequest": AddPartitionsToTxnRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "AddPartitionsToTxnPartitionResult": AddPartitionsToTxnPartitionResult,
    "AddPartitionsToTxnTopicResult": AddPartitionsToTxnTopicResult,
    "AddPartitionsToTxnResult": AddPartitionsToTxnResult,
    "AddPartitionsToTxnResponse": AddPartitionsToTxnResponse,
}

REQUEST_FIELDS: Final = """
AddPartitionsToTxnRequest 0-5 flexible 3+
 transactions []AddPartitionsToTxnTransaction 4+
  transactional_id string 4+
  producer_id int64 4+
  producer_epoch int16 4+
  verify_only bool 4+ = false
  topics []AddPartitionsToTxnTopic 4+
   name string 4+
   partitions []int32 4+
 v3_and_below_transactional_id string -3
 v3_and_below_producer_id int64 -3
 v3_and_below_producer_epoch int16 -3
 v3_and_below_topics []AddPartitionsToTxnTopic -3
  name string -3
  partitions []int32 -3
"""
RESPONSE_FIELDS: Final = """
AddPartitionsToTxnResponse 0-5 flexible 3+
 throttle_time_ms int32
 error_code int16 4+
 results_by_transaction []AddPartitionsToTxnResult 4+
  transactional_id string 4+
  topic_results []AddPartitionsToTxnTopicResult 4+
   name string 4+
   results_by_partition []AddPartitionsToTxnPartitionResult 4+
    partition_index int32 4+
    partition_error_code int16 4+
 results_by_topic_v3_and_below []AddPartitionsToTxnTopicResult -3
  name string -3
  results_by_partition []AddPartitionsToTxnPartitionResult -3
   partition_index int32 -3
   partition_error_code int16 -3
"""
