"""PushTelemetry, version 0 (KIP-714): what a client has measured, as OpenTelemetry metrics, compressed or not.

INVALID_REQUEST without a client instance id, and after a push with ``terminating``; THROTTLING_QUOTA_EXCEEDED for a push too
early, unless it is terminating; UNKNOWN_SUBSCRIPTION_ID where the client is asked for something else by now;
UNSUPPORTED_COMPRESSION_TYPE; TELEMETRY_TOO_LARGE beyond ``telemetry.max.bytes``, or beyond sixteen times as much when it is
decompressed; INVALID_RECORD where it is no MetricsData: clients stop pushing then. Anybody may push.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import anybody
from odradek.protocol.message_types.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from odradek.timing.reply import Reply

if TYPE_CHECKING:
    from odradek.broker.api.services import TelemetryServices
    from odradek.common.context import RequestContext


def handle(
    services: "TelemetryServices", context: "RequestContext", request: PushTelemetryRequest
) -> "PushTelemetryResponse | Reply[PushTelemetryResponse]":
    """Take it in."""
    outcome = services.telemetry.push(context, request)
    if isinstance(outcome, Reply):
        return outcome.then(lambda code: PushTelemetryResponse(error_code=code))
    return PushTelemetryResponse(error_code=outcome)


rule = anybody
