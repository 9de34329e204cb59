"""UpdateFeatures, versions 0 to 2: finalizes feature levels (KIP-584, KIP-1022), all of the requested ones or none.

INVALID_UPDATE_VERSION at the top names the first invalid update; ``controller/features`` has the valid ones. Deliberate gap:
versions 0 and 1 also have a result for each feature; that list stays empty here, as the code at the top says the same.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import ControllerServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


def handle(
    services: "ControllerServices", _context: "RequestContext", request: UpdateFeaturesRequest
) -> "Reply[UpdateFeaturesResponse]":
    """Update the features of ``request``, or only validate that."""
    updates = [(update.feature, update.max_version_level, update.upgrade_type) for update in request.feature_updates]
    return services.controller.update_features(updates, validate_only=request.validate_only).then(_response)


def _response(error: KafkaError | None) -> UpdateFeaturesResponse:
    if error is not None:
        return UpdateFeaturesResponse(error_code=error.code, error_message=error.reason)
    return UpdateFeaturesResponse()


rule = on_cluster(AclOperation.ALTER)
