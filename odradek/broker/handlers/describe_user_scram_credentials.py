"""DescribeUserScramCredentials, version 0: which users have SCRAM credentials, of which mechanisms and iterations (KIP-554)."""

from typing import TYPE_CHECKING

from odradek.broker.metadata.scram_credentials import describe
from odradek.protocol.message_types.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.context import RequestContext
    from odradek.broker.handlers.services import MetadataServices


def handle(
    services: "MetadataServices", _context: "RequestContext", request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describe the users of ``request``, or all."""
    names = [user.name for user in request.users or ()]
    return DescribeUserScramCredentialsResponse(error_message="", results=describe(services.controller.image, names))
