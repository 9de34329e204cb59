"""``odradek tokens``: delegation tokens, which let others log in as their owner, on any cluster that has them (KIP-48).

A token's HMAC is its password: ``create`` shows it once, and no command takes it as an argument. Commands name tokens by id.
Brokers show a token to its owner and its renewers only. You have to authenticate, and not with a token: ``--command-config``.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from odradek.cli.cluster import Cluster, Refused, check
from odradek.cli.options import Servers, asks_a_broker, command_group, row_of, show
from odradek.client.admin_apis import (
    CREATE_DELEGATION_TOKEN,
    CREATE_DELEGATION_TOKEN_FOR_ANOTHER,
    DESCRIBE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from odradek.protocol.message_types.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from odradek.protocol.message_types.expire_delegation_token import ExpireDelegationTokenRequest
from odradek.protocol.message_types.renew_delegation_token import RenewDelegationTokenRequest
from odradek.protocol.texts import encode_base64

Principal = tuple[str, str]

_NEVER_LATER = -1
_LISTED = ("token_id", "owner", "requester", "renewers", "issued", "expires", "expires_at_last")
_CREATED = ("token_id", "hmac", "owner", "expires", "expires_at_last")
_CHANGED = ("token_id", "expires")


def _principal(_context: click.Context, _option: click.Parameter, given: str | None) -> Principal | None:
    """Parse ``TYPE:NAME`` as (type, name); the callback of an option."""
    if given is None:
        return None
    kind, _, name = given.partition(":")
    if not kind or not name:
        raise click.BadParameter(f"{given!r} is not of the form User:alice")
    return kind, name


def _principals(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> list[Principal]:
    """Parse a repeated option; its callback."""
    return [found for each in given if (found := _principal(context, option, each)) is not None]


@command_group()
def tokens() -> None:
    """Manage delegation tokens, which let others log in as their owner."""


@tokens.command("list")
@asks_a_broker
@click.option(
    "--owner", "owners", metavar="PRINCIPAL", multiple=True, callback=_principals, help="Only tokens of this owner; repeatable."
)
def list_tokens(bootstrap: Servers, as_json: bool, owners: list[Principal]) -> int:
    """List the tokens that you may see, without their HMACs."""
    with Cluster(bootstrap) as cluster:
        found = _described(cluster, owners)
    rows = [
        row_of(
            _LISTED,
            token.token_id,
            f"{token.principal_type}:{token.principal_name}",
            f"{token.token_requester_principal_type}:{token.token_requester_principal_name}".strip(":"),
            [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in token.renewers],
            *map(_moment, (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp)),
        )
        for token in sorted(found, key=lambda token: (token.expiry_timestamp, token.token_id))
    ]
    show(_LISTED, rows, as_json=as_json)
    return 0


@tokens.command()
@asks_a_broker
@click.option(
    "--renewer",
    "renewers",
    metavar="PRINCIPAL",
    multiple=True,
    callback=_principals,
    help="Another principal that may renew the token; repeatable.",
)
@click.option("--owner", metavar="PRINCIPAL", callback=_principal, help="The token's owner.  [default: you]")
@click.option(
    "--max-lifetime-ms",
    type=click.IntRange(1),
    help="Milliseconds until it expires for good, even if renewed.  [default: the broker's]",
)
def create(
    bootstrap: Servers,
    as_json: bool,
    renewers: list[Principal],
    owner: Principal | None,
    max_lifetime_ms: int | None,
) -> int:
    """Create a token, and show its HMAC. Token id and HMAC together let anybody log in as the owner."""
    request = CreateDelegationTokenRequest(
        renewers=[CreatableRenewers(*renewer) for renewer in renewers],
        max_lifetime_ms=_NEVER_LATER if max_lifetime_ms is None else max_lifetime_ms,
    )
    api = CREATE_DELEGATION_TOKEN
    if owner is not None:
        api = CREATE_DELEGATION_TOKEN_FOR_ANOTHER
        request = request._replace(owner_principal_type=owner[0], owner_principal_name=owner[1])
    with Cluster(bootstrap) as cluster:
        token = cluster.any.call(api, request)
    check("token", token.error_code)
    row = row_of(
        _CREATED,
        token.token_id,
        encode_base64(token.hmac),
        f"{token.principal_type}:{token.principal_name}",
        _moment(token.expiry_timestamp_ms),
        _moment(token.max_timestamp_ms),
    )
    show(_CREATED, [row], as_json=as_json)
    return 0


@tokens.command()
@click.argument("token_id")
@asks_a_broker
@click.option("--period-ms", type=click.IntRange(1), help="Milliseconds from now until it expires.  [default: the broker's]")
def renew(token_id: str, bootstrap: Servers, as_json: bool, period_ms: int | None) -> int:
    """Let a token expire later."""
    with Cluster(bootstrap) as cluster:
        hmac = _hmac(cluster, token_id)
        period_ms = _NEVER_LATER if period_ms is None else period_ms
        answer = cluster.any.call(RENEW_DELEGATION_TOKEN, RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms))
    check(token_id, answer.error_code)
    show(_CHANGED, [{"token_id": token_id, "expires": _moment(answer.expiry_timestamp_ms)}], as_json=as_json)
    return 0


@tokens.command()
@click.argument("token_id")
@asks_a_broker
@click.option(
    "--in-ms", "period_ms", type=click.IntRange(0), help="Milliseconds from now until it expires.  [default: remove it at once]"
)
def expire(token_id: str, bootstrap: Servers, as_json: bool, period_ms: int | None) -> int:
    """Let a token expire sooner, or remove it. Open sessions continue."""
    with Cluster(bootstrap) as cluster:
        hmac = _hmac(cluster, token_id)
        period_ms = _NEVER_LATER if period_ms is None else period_ms
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        answer = cluster.any.call(EXPIRE_DELEGATION_TOKEN, request)
    check(token_id, answer.error_code)
    show(_CHANGED, [{"token_id": token_id, "expires": _moment(answer.expiry_timestamp_ms)}], as_json=as_json)
    return 0


def _described(cluster: Cluster, owners: Sequence[Principal] = ()) -> list[DescribedDelegationToken]:
    asked = [DescribeDelegationTokenOwner(*owner) for owner in owners] or None
    answer = cluster.any.call(DESCRIBE_DELEGATION_TOKEN, DescribeDelegationTokenRequest(owners=asked))
    check("tokens", answer.error_code)
    return list(answer.tokens)


def _hmac(cluster: Cluster, token_id: str) -> bytes:
    """Return a token's HMAC, by which requests name it. Raises Refused."""
    for token in _described(cluster):
        if token.token_id == token_id:
            return token.hmac
    raise Refused(token_id, ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "no such token, or you may not see it")


def _moment(at_ms: int) -> str:
    """Return a time in UTC; in ms if it is beyond the calendar."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return str(at_ms)
