"""GetTelemetrySubscriptions, version 0 (KIP-714): the metrics that a client is to push, the interval, and the client's id.

Without a matching subscription the list is empty, and the client asks again after five minutes. A client without a client
instance id is given one. Any client may ask. THROTTLING_QUOTA_EXCEEDED for a client that asks again within its push interval,
unless the subscriptions have changed, or its last push was answered UNKNOWN_SUBSCRIPTION_ID or UNSUPPORTED_COMPRESSION_TYPE.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import allow_all
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
    """Return the metrics that the matching subscriptions ask for."""
    return services.telemetry.subscription(context, request.client_instance_id)


rule = allow_all
