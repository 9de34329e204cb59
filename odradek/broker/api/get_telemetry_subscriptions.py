"""GetTelemetrySubscriptions, version 0 (KIP-714): which of its metrics a client is to push, how often, and by which id.

Without a subscription that matches the client the list is empty, and the client asks again after five minutes. A client that has
no client instance id is given one. Anybody may ask. THROTTLING_QUOTA_EXCEEDED for a client that asks again within its push
interval, unless the subscriptions have changed, or its last push was answered UNKNOWN_SUBSCRIPTION_ID or
UNSUPPORTED_COMPRESSION_TYPE.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import anybody
from odradek.protocol.message_types.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import TelemetryServices
    from odradek.common.context import RequestContext


def handle(
    services: "TelemetryServices", context: "RequestContext", request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Answer with what the subscriptions that match ask for."""
    return services.telemetry.subscription(context, request.client_instance_id)


rule = anybody
