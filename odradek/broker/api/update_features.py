"""UpdateFeatures, versions 0 to 2: feature levels are finalized (KIP-584, KIP-1022), all of those asked for or none.

INVALID_UPDATE_VERSION at the top tells of the first that cannot be; what can be is in ``controller/features``. Deliberate gap:
versions 0 and 1 list a result for each feature as well; that list stays empty here, the code at the top says the same.
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
    """Update, or only validate, the features of ``request``."""
    updates = [(update.feature, update.max_version_level, update.upgrade_type) for update in request.feature_updates]
    return services.controller.update_features(updates, validate_only=request.validate_only).then(_response)


def _response(error: KafkaError | None) -> UpdateFeaturesResponse:
    if error is not None:
        return UpdateFeaturesResponse(error_code=error.code, error_message=error.reason)
    return UpdateFeaturesResponse()


rule = on_cluster(AclOperation.ALTER)
