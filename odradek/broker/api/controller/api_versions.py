"""ApiVersions, versions 0 to 5, of a controller: the APIs of its listener, and the cluster's features (KIP-584).

From version 4 on a feature's range may begin at 0. Unlike a broker, a controller answers a client that takes it for another node
(version 5), as in Kafka.
"""

from typing import TYPE_CHECKING

from odradek.broker.api.api_versions import is_valid
from odradek.broker.api.controller import SERVED
from odradek.broker.security.acl.rules import allow_all
from odradek.controller.metadata.features import SUPPORTED_FEATURES, finalized_levels
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import QuorumServices


def handle(services: "QuorumServices", context: "RequestContext", request: ApiVersionsRequest) -> ApiVersionsResponse:
    """Return the table and the features; INVALID_REQUEST for a malformed request."""
    if not is_valid(request, context.version):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    levels = finalized_levels(services.controller.image.features, services.controller.kraft_version)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=api_key, min_version=served.min_version, max_version=served.max_version)
            for api_key, served in SERVED.items()
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
            if low > 0 or context.version >= 4
        ],
        finalized_features_epoch=services.controller.log_end_offset - 1,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level) for name, level in levels.items()
        ],
    )


# No authorization: any client may ask for the versions.
rule = allow_all
