"""UpdateFeatures up to version 2. Written by tools/generate_messages.py."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple


class FeatureUpdateKey(NamedTuple):
    """Part of the UpdateFeatures request."""

    feature: str = ""
    max_version_level: int = 0
    upgrade_type: int = 1


class UpdateFeaturesRequest(NamedTuple):
    """The UpdateFeatures request."""

    timeout_ms: int = 60000
    feature_updates: Sequence[FeatureUpdateKey] = ()
    validate_only: bool = False


class UpdatableFeatureResult(NamedTuple):
    """Part of the UpdateFeatures response."""

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
