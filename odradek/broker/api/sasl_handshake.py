"""SaslHandshake, versions 0 and 1, of a client that has authenticated, or that need not: ILLEGAL_SASL_STATE.

That of a client that has to authenticate comes no further than ``network.sasl_listeners``. So does one that renews a session with
a lifetime (KIP-368), unless the last renewal was less than a second ago.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import anybody
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from odradek.common.context import RequestContext


def handle(_services: object, _context: "RequestContext", _request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Refuse it."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


# A client may say who it is.
rule = anybody
