"""Rules for delegation tokens: CreateDelegationToken and DescribeDelegationToken (KIP-373).

For itself a client may have a token without any rights. Where it may not ask for tokens at all, the handler says so.
"""

from typing import Any

from odradek.broker.authorization.asked import Asked, only
from odradek.broker.authorizer.acls import AclOperation, AclResourceType
from odradek.broker.metadata.delegation_tokens import owner_of
from odradek.broker.token_logins import allows_token_requests
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_delegation_token import DescribedDelegationToken


def create_delegation_token(asked: Asked) -> Any:
    """CREATE_TOKENS on the user that is to own the token, if that is another one."""
    from odradek.broker.handlers.create_delegation_token import refusal

    requester = asked.context.session.principal
    owner = owner_of(asked.request, requester)
    if (
        owner == requester
        or asked.request.owner_principal_type is None
        or not allows_token_requests(asked.services.config, asked.context)
    ):
        return asked.handle()
    if asked.access.allows(AclOperation.CREATE_TOKENS, AclResourceType.USER, owner):
        return asked.handle()
    return refusal(asked.request, requester, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)


def describe_delegation_token(asked: Asked) -> Any:
    """A client's own tokens, and those that it may renew; DESCRIBE on others, or DESCRIBE_TOKENS on their owners."""
    access = asked.access

    def may_see(token: DescribedDelegationToken) -> bool:
        owner = f"{token.principal_type}:{token.principal_name}"
        requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
        renewers = (f"{each.principal_type}:{each.principal_name}" for each in token.renewers)
        return (
            access.principal in (owner, requester, *renewers)
            or access.allows(AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, token.token_id, tells=False)
            or access.allows(AclOperation.DESCRIBE_TOKENS, AclResourceType.USER, owner, tells=False)
        )

    return only(asked, asked.handle(), "tokens", may_see)
