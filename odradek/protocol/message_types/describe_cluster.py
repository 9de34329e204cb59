"""DescribeCluster up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class DescribeClusterRequest(NamedTuple):
    """The DescribeCluster request."""

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False


class DescribeClusterBroker(NamedTuple):
    """A struct of the DescribeCluster response."""

    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False


class DescribeClusterResponse(NamedTuple):
    """The DescribeCluster response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: Sequence[DescribeClusterBroker] = ()
    cluster_authorized_operations: int = -2147483648


REQUEST: Final[dict[str, type[Any]]] = {
    "DescribeClusterRequest": DescribeClusterRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "DescribeClusterBroker": DescribeClusterBroker,
    "DescribeClusterResponse": DescribeClusterResponse,
}

REQUEST_FIELDS: Final = """
DescribeClusterRequest 0-2 flexible 0+
 include_cluster_authorized_operations bool
 endpoint_type int8 1+ = 1
 include_fenced_brokers bool 2+
"""
RESPONSE_FIELDS: Final = """
DescribeClusterResponse 0-2 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null = null
 endpoint_type int8 1+ = 1
 cluster_id string
 controller_id int32 = -1
 brokers []DescribeClusterBroker
  broker_id int32
  host string
  port int32
  rack string null = null
  is_fenced bool 2+
 cluster_authorized_operations int32 = -2147483648
"""
