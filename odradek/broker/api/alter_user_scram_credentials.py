"""AlterUserScramCredentials, version 0: sets and removes users' SCRAM credentials (KIP-554).

The client sends the salted password, never the password. The broker stores only the data it needs to check a client.
"""

from typing import TYPE_CHECKING

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.error_answers import error_answer
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from odradek.broker.api.services import ControllerServices
    from odradek.common.context import RequestContext
    from odradek.timing.reply import Reply


def handle(
    services: "ControllerServices", _context: "RequestContext", request: AlterUserScramCredentialsRequest
) -> "Reply[AlterUserScramCredentialsResponse]":
    """Alter each user of ``request`` independently."""

    def answer(outcome: list[AlterUserScramCredentialsResult] | KafkaError) -> AlterUserScramCredentialsResponse:
        if isinstance(outcome, KafkaError):
            api_key = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
            failed: AlterUserScramCredentialsResponse = error_answer(api_key, request, outcome.code, outcome.reason)
            return failed
        return AlterUserScramCredentialsResponse(results=outcome)

    return services.controller.alter_user_scram_credentials(request).then(answer)


rule = on_cluster(AclOperation.ALTER)
