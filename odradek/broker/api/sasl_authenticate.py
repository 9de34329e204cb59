"""SaslAuthenticate, versions 0 to 2, after authentication or without need for it: ILLEGAL_SASL_STATE.

Requests of clients that are authenticating are handled in ``network.sasl_listeners``, and never get here.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import allow_all
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

if TYPE_CHECKING:
    from odradek.common.context import RequestContext


def handle(_services: object, _context: "RequestContext", _request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Refuse the request."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


# No authorization: any client may try to authenticate.
rule = allow_all
