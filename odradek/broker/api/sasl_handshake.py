"""SaslHandshake, versions 0 and 1, after authentication or without need for it: ILLEGAL_SASL_STATE.

Requests of clients that must authenticate are handled in ``network.sasl_listeners``, and never get here. The same holds for the
renewal of a session with a lifetime (KIP-368), unless the last renewal was less than a second ago.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import allow_all
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from odradek.common.context import RequestContext


def handle(_services: object, _context: "RequestContext", _request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Refuse the request."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


# No authorization: any client may try to authenticate.
rule = allow_all
