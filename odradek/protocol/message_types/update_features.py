"""UpdateFeatures up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class FeatureUpdateKey(NamedTuple):
    """A struct of the UpdateFeatures request."""

    feature: str = ""
    max_version_level: int = 0
    upgrade_type: int = 1


class UpdateFeaturesRequest(NamedTuple):
    """The UpdateFeatures request."""

    timeout_ms: int = 60000
    feature_updates: Sequence[FeatureUpdateKey] = ()
    validate_only: bool = False


class UpdatableFeatureResult(NamedTuple):
    """A struct of the UpdateFeatures response."""

    feature: str = ""
    error_code: int = 0
    error_message: str | None = None


class UpdateFeaturesResponse(NamedTuple):
    """The UpdateFeatures response."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    results: Sequence[UpdatableFeatureResult] = ()


REQUEST: Final[dict[str, type[Any]]] = {
    "FeatureUpdateKey": FeatureUpdateKey,
    "UpdateFeaturesRequest": UpdateFeaturesRequest,
}
RESPONSE: Final[dict[str, type[Any]]] = {
    "UpdatableFeatureResult": UpdatableFeatureResult,
    "UpdateFeaturesResponse": UpdateFeaturesResponse,
}

REQUEST_FIELDS: Final = """
UpdateFeaturesRequest 0-2 flexible 0+
 timeout_ms int32 = 60000
 feature_updates []FeatureUpdateKey
  feature string
  max_version_level int16
  allow_downgrade bool -0
  upgrade_type int8 1+ = 1
 validate_only bool 1+ = false
"""
RESPONSE_FIELDS: Final = """
UpdateFeaturesResponse 0-2 flexible 0+
 throttle_time_ms int32
 error_code int16
 error_message string null
 results []UpdatableFeatureResult -1
  feature string -1
  error_code int16 -1
  error_message string -1 null -1
"""
