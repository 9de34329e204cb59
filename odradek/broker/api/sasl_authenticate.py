"""SaslAuthenticate, versions 0 to 2, of a client that has authenticated, or that need not: ILLEGAL_SASL_STATE.

That of a client that authenticates comes no further than ``network.sasl_listeners``.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import anybody
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

if TYPE_CHECKING:
    from odradek.common.context import RequestContext


def handle(_services: object, _context: "RequestContext", _request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Refuse it."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


# A client may say who it is.
rule = anybody
