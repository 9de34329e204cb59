"""ApiVersions up to version 5. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class ApiVersionsRequest(NamedTuple):
    """The ApiVersions request."""

    client_software_name: str = ""
    client_software_version: str = ""
    cluster_id: str | None = None
    node_id: int = -1


class ApiVersion(NamedTuple):
    """A struct of the ApiVersions response."""

    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


class SupportedFeatureKey(NamedTuple):
    """A struct of the ApiVersions response."""

    name: str = ""
    min_version: int = 0
    max_version: int = 0


class FinalizedFeatureKey(NamedTuple):
    """A struct of the ApiVersions response."""

    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


class ApiVersionsResponse(NamedTuple):
    """The ApiVersions response."""

    error_code: int = 0
    api_keys: Sequence[ApiVersion] = ()
    throttle_time_ms: int = 0
    supported_features: Sequence[SupportedFeatureKey] = ()
    finalized_features_epoch: int = -1
    finalized_features: Sequence[FinalizedFeatureKey] = ()
    zk_migration_ready: bool = False


REQUEST: Final[dict[str, type[Any]]] = {
    "ApiVersionsRequest": ApiVersionsRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "ApiVersion": ApiVersion,
    "SupportedFeatureKey": SupportedFeatureKey,
    "FinalizedFeatureKey": FinalizedFeatureKey,
    "ApiVersionsResponse": ApiVersionsResponse,
}

REQUEST_FIELDS: Final = """
ApiVersionsRequest 0-5 flexible 3+
 client_software_name string 3+
 client_software_version string 3+
 cluster_id string 5+ null 5+ = null
 node_id int32 5+ = -1
"""
RESPONSE_FIELDS: Final = """
ApiVersionsResponse 0-5 flexible 3+
 error_code int16
 api_keys []ApiVersion
  api_key int16
  min_version int16
  max_version int16
 throttle_time_ms int32 1+
 supported_features []SupportedFeatureKey 3+ tag 0
  name string 3+
  min_version int16 3+
  max_version int16 3+
 finalized_features_epoch int64 3+ tag 1 = -1
 finalized_features []FinalizedFeatureKey 3+ tag 2
  name string 3+
  max_version_level int16 3+
  min_version_level int16 3+
 zk_migration_ready bool 3+ tag 3 = false
"""
