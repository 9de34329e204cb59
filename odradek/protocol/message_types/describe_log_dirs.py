"""DescribeLogDirs up to version 5. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class DescribableLogDirTopic(NamedTuple):
    """A struct of the DescribeLogDirs request."""

    topic: str = ""
    partitions: Sequence[int] = ()


class DescribeLogDirsRequest(NamedTuple):
    """The DescribeLogDirs request."""

    topics: Sequence[DescribableLogDirTopic] | None = ()


class DescribeLogDirsPartition(NamedTuple):
    """A struct of the DescribeLogDirs response."""

    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(NamedTuple):
    """A struct of the DescribeLogDirs response."""

    name: str = ""
    partitions: Sequence[DescribeLogDirsPartition] = ()


class DescribeLogDirsResult(NamedTuple):
    """A struct of the DescribeLogDirs response."""

    error_code: int = 0
    log_dir: str = ""
    topics: Sequence[DescribeLogDirsTopic] = ()
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


class DescribeLogDirsResponse(NamedTuple):
    """The DescribeLogDirs response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    results: Sequence[DescribeLogDirsResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "DescribableLogDirTopic": DescribableLogDirTopic,
    "DescribeLogDirsRequest": DescribeLogDirsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "DescribeLogDirsPartition": DescribeLogDirsPartition,
    "DescribeLogDirsTopic": DescribeLogDirsTopic,
    "DescribeLogDirsResult": DescribeLogDirsResult,
    "DescribeLogDirsResponse": DescribeLogDirsResponse,
}

REQUEST_FIELDS: Final = """
DescribeLogDirsRequest 1-5 flexible 2+
 topics []DescribableLogDirTopic null
  topic string
  partitions []int32
"""
RESPONSE_FIELDS: Final = """
DescribeLogDirsResponse 1-5 flexible 2+
 throttle_time_ms int32
 error_code int16 3+
 results []DescribeLogDirsResult
  error_code int16
  log_dir string
  topics []DescribeLogDirsTopic
   name string
   partitions []DescribeLogDirsPartition
    partition_index int32
    partition_size int64
    offset_lag int64
    is_future_key bool
  total_bytes int64 4+ = -1
  usable_bytes int64 4+ = -1
  is_cordoned bool 5+ = false
"""
