"""PushTelemetry, version 0 (KIP-714): a client's metrics in the OpenTelemetry format, compressed or not.

INVALID_REQUEST without a client instance id, and after a push with ``terminating``; THROTTLING_QUOTA_EXCEEDED for a push too
early, unless it is terminating; UNKNOWN_SUBSCRIPTION_ID if the client's subscription has changed;
UNSUPPORTED_COMPRESSION_TYPE; TELEMETRY_TOO_LARGE beyond ``telemetry.max.bytes``, or beyond sixteen times that size when
decompressed; INVALID_RECORD if it is not MetricsData, after which clients stop pushing. Any client may push.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import allow_all
from odradek.protocol.message_types.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.broker.api.services import TelemetryServices
    from odradek.common.context import RequestContext


def handle(
    services: "TelemetryServices", context: "RequestContext", request: PushTelemetryRequest
) -> "PushTelemetryResponse | Reply[PushTelemetryResponse]":
    """Take in the pushed metrics."""
    outcome = services.telemetry.push(context, request)
    if isinstance(outcome, Reply):
        return outcome.then(lambda code: PushTelemetryResponse(error_code=code))
    return PushTelemetryResponse(error_code=outcome)


rule = allow_all
