"""ApiVersions 0-5: the served APIs and versions, straight from the table of handlers.

KIP-511 (client software name and version, checked from version 3 on), KIP-584 (finalized features). From version 4 on a
feature's range may begin at 0. Older clients could not read such features, so they are not told of them (KAFKA-17011).

Client telemetry (KIP-714) is offered only while a client metrics subscription exists: most clients that are offered it ask at
once, and librdkafka reports that on stderr.

From version 5 on, a client may say which broker of which cluster it takes this one for. If it is wrong, the answer is
REBOOTSTRAP_REQUIRED: the client starts again from its bootstrap servers (KIP-1242).

Left out: ZooKeeper migration.
"""

import re
from typing import TYPE_CHECKING, Final

from odradek.broker.api import SERVED
from odradek.broker.security.acl.rules import allow_all
from odradek.common.context import RequestContext
from odradek.controller.metadata.features import SUPPORTED_FEATURES, finalized_levels
from odradek.controller.metadata.image import CLIENT_METRICS_RESOURCE
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import NodeServices

_TELEMETRY = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
_FIRST_WITH_SOFTWARE: Final = 3
_NO_NODE: Final = -1
_CLIENT_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def is_valid(request: ApiVersionsRequest, version: int) -> bool:
    """Return whether the software's name and version are well-formed, and cluster and node are both given or both left out."""
    if (request.cluster_id is None) != (request.node_id == _NO_NODE):
        return False
    software = (request.client_software_name, request.client_software_version)
    return version < _FIRST_WITH_SOFTWARE or all(map(_CLIENT_SOFTWARE.fullmatch, software))


def handle(services: "NodeServices", context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """Return the table; an error for a malformed request, or one for another broker."""
    if not is_valid(request, context.version):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if request.cluster_id is not None and (request.cluster_id, request.node_id) != (services.cluster_id, services.node_id):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    if context.version >= _FIRST_WITH_SOFTWARE:
        context.session.client_software_name = request.client_software_name
        context.session.client_software_version = request.client_software_version
    controller = services.controller
    unasked: frozenset[ApiKey] = frozenset() if controller.image.configured(CLIENT_METRICS_RESOURCE) else _TELEMETRY
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=api_key, min_version=served.advertised_min, max_version=served.max_version)
            for api_key, served in SERVED.items()
            if api_key not in unasked
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
            if low > 0 or context.version >= 4
        ],
        finalized_features_epoch=controller.log_end_offset - 1,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in finalized_levels(controller.image.features, controller.kraft_version).items()
        ],
    )


# No authorization: any client may ask for the versions.
rule = allow_all
