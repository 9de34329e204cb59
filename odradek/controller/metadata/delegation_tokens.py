"""Delegation tokens: decisions on requests for them, and their descriptions (KIP-48, KIP-373).

    token id   a random UUID: the user name of a client that logs in with the token
    HMAC       HmacSHA512(delegation.token.secret.key, token id): the password, in base64

A token's HMAC is in no record. It is computed on request. Kafka's class is DelegationTokenControlManager.

The controller removes expired tokens every ``delegation.token.expiry.check.interval.ms``.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final, NoReturn

from odradek.common.config.definitions import MAX_LONG
from odradek.controller.metadata.features import METADATA_VERSION
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.create_delegation_token import CreateDelegationTokenResponse
from odradek.protocol.message_types.describe_delegation_token import DescribedDelegationToken, DescribedDelegationTokenRenewer
from odradek.protocol.metadata_records.security import DelegationTokenRecord, RemoveDelegationTokenRecord
from odradek.protocol.texts import new_uuid_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from odradek.common.config.broker_config import BrokerConfig
    from odradek.controller.metadata.image import MetadataImage
    from odradek.controller.metadata.writer import MetadataWriter
    from odradek.protocol.message_types.create_delegation_token import CreateDelegationTokenRequest
    from odradek.protocol.message_types.expire_delegation_token import ExpireDelegationTokenRequest
    from odradek.protocol.message_types.renew_delegation_token import RenewDelegationTokenRequest
    from odradek.protocol.metadata_records import MetadataRecord
    from odradek.timing.timer import Timer

# metadata.version 3.6-IV2 brought the records.
_FIRST_METADATA_VERSION: Final = 14
USER: Final = "User"


class DelegationTokens:
    """Decides on tokens with a node's secret key and lifetimes. Nothing here changes an image."""

    def __init__(self, config: BrokerConfig) -> None:
        self._secret_key: bytes = (config["delegation.token.secret.key"] or "").encode()
        self._max_lifetime_ms: int = config["delegation.token.max.lifetime.ms"]
        self._expiry_time_ms: int = config["delegation.token.expiry.time.ms"]
        # A cache of the tokens looked up: token ids by HMAC, and HMACs by token id.
        self._token_ids: dict[bytes, str] = {}
        self._hmacs: dict[str, bytes] = {}

    @property
    def is_enabled(self) -> bool:
        """Return whether there is a secret key."""
        return bool(self._secret_key)

    def hmac_of(self, token_id: str) -> bytes:
        """Return the HMAC of a token."""
        return hmac.digest(self._secret_key, token_id.encode(), "sha512")

    def create(
        self,
        image: MetadataImage,
        request: CreateDelegationTokenRequest,
        requester: str,
        now_ms: int,
        new_uuid: Callable[[], UUID],
    ) -> tuple[CreateDelegationTokenResponse, list[MetadataRecord]]:
        """Create a token. KafkaError: DELEGATION_TOKEN_AUTH_DISABLED, UNSUPPORTED_VERSION."""
        self._ensure_supported(image)
        lifetime_ms = self._max_lifetime_ms
        if request.max_lifetime_ms > 0:
            lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
        max_timestamp = _sum(now_ms, lifetime_ms)
        record = DelegationTokenRecord(
            owner=owner_of(request, requester),
            requester=requester,
            renewers=tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in request.renewers),
            issue_timestamp=now_ms,
            max_timestamp=max_timestamp,
            expiration_timestamp=min(max_timestamp, _sum(now_ms, self._expiry_time_ms)),
            token_id=new_uuid_text(new_uuid),
        )
        response = naming(record.owner, requester)._replace(
            issue_timestamp_ms=now_ms,
            expiry_timestamp_ms=record.expiration_timestamp,
            max_timestamp_ms=max_timestamp,
            token_id=record.token_id,
            hmac=self.hmac_of(record.token_id),
        )
        return response, [record]

    def renew(
        self, image: MetadataImage, request: RenewDelegationTokenRequest, requester: str, now_ms: int
    ) -> tuple[int, list[MetadataRecord]]:
        """Renew a token; return its new expiry time and the record.

        KafkaError: DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED,
        DELEGATION_TOKEN_OWNER_MISMATCH; UNSUPPORTED_VERSION.
        """
        self._ensure_supported(image)
        token = self._found(image, request.hmac)
        if is_expired(token, now_ms):
            _refuse(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        _ensure_renewer(token, requester)
        period_ms = self._expiry_time_ms
        if request.renew_period_ms > 0:
            period_ms = min(period_ms, request.renew_period_ms)
        expiry_ms = min(token.max_timestamp, _sum(now_ms, period_ms))
        return expiry_ms, [_expiring(token, expiry_ms)]

    def expire(
        self, image: MetadataImage, request: ExpireDelegationTokenRequest, requester: str, now_ms: int
    ) -> tuple[int, list[MetadataRecord]]:
        """Change a token's expiry time; return it and the record. A negative period removes the token.

        Raises the same errors as ``renew``.
        """
        self._ensure_supported(image)
        token = self._found(image, request.hmac)
        _ensure_renewer(token, requester)
        if request.expiry_time_period_ms < 0:
            return now_ms, [RemoveDelegationTokenRecord(token_id=token.token_id)]
        if is_expired(token, now_ms):
            _refuse(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        expiry_ms = min(token.max_timestamp, _sum(now_ms, request.expiry_time_period_ms))
        return expiry_ms, [_expiring(token, expiry_ms)]

    def concerning(self, image: MetadataImage, owners: Iterable[str] | None) -> list[DelegationTokenRecord]:
        """Return the tokens that one of ``owners`` owns, has requested, or may renew; None: all tokens."""
        wanted = None if owners is None else set(owners)
        tokens = image.kept.delegation_tokens.values()
        return [token for token in tokens if wanted is None or not wanted.isdisjoint(concerned(token))]

    def describe(self, token: DelegationTokenRecord) -> DescribedDelegationToken:
        """Return a token with its HMAC."""
        owner_type, owner_name = _parts(token.owner)
        requester_type, requester_name = _parts(token.requester)
        return DescribedDelegationToken(
            principal_type=owner_type,
            principal_name=owner_name,
            token_requester_principal_type=requester_type,
            token_requester_principal_name=requester_name,
            issue_timestamp=token.issue_timestamp,
            expiry_timestamp=token.expiration_timestamp,
            max_timestamp=token.max_timestamp,
            token_id=token.token_id,
            hmac=self.hmac_of(token.token_id),
            renewers=[DescribedDelegationTokenRenewer(*_parts(renewer)) for renewer in token.renewers],
        )

    def _ensure_supported(self, image: MetadataImage) -> None:
        if not self.is_enabled:
            _refuse(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        if image.features.get(METADATA_VERSION, 0) < _FIRST_METADATA_VERSION:
            _refuse(ErrorCode.UNSUPPORTED_VERSION)

    def _found(self, image: MetadataImage, shown: bytes) -> DelegationTokenRecord:
        """Return the token of an HMAC."""
        tokens = image.kept.delegation_tokens
        for gone in self._hmacs.keys() - tokens.keys():
            del self._token_ids[self._hmacs.pop(gone)]
        for token_id in tokens.keys() - self._hmacs.keys():
            self._hmacs[token_id] = self.hmac_of(token_id)
            self._token_ids[self._hmacs[token_id]] = token_id
        token_id_shown = self._token_ids.get(bytes(shown))
        if token_id_shown is None:
            _refuse(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return tokens[token_id_shown]


def is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    """Return whether a token has expired."""
    return min(token.max_timestamp, token.expiration_timestamp) < now_ms


def removals(image: MetadataImage, now_ms: int) -> list[MetadataRecord]:
    """Return the records that remove the expired tokens."""
    tokens = image.kept.delegation_tokens.values()
    return [RemoveDelegationTokenRecord(token_id=token.token_id) for token in tokens if is_expired(token, now_ms)]


def concerned(token: DelegationTokenRecord) -> tuple[str, ...]:
    """Return the principals that may see a token: its owner, its requester, and its renewers."""
    return (token.owner, token.requester, *token.renewers)


def owner_of(request: CreateDelegationTokenRequest, requester: str) -> str:
    """Return the principal that a token is requested for."""
    if not request.owner_principal_name:
        return requester
    return f"{request.owner_principal_type}:{request.owner_principal_name}"


def naming(owner: str, requester: str) -> CreateDelegationTokenResponse:
    """Return a response that names owner and requester, without a token."""
    owner_type, owner_name = _parts(owner)
    requester_type, requester_name = _parts(requester)
    return CreateDelegationTokenResponse(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
    )


def _expiring(token: DelegationTokenRecord, expiry_ms: int) -> DelegationTokenRecord:
    return token._replace(expiration_timestamp=expiry_ms)


def _ensure_renewer(token: DelegationTokenRecord, requester: str) -> None:
    if requester != token.owner and requester not in token.renewers:
        _refuse(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _parts(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name


def _sum(now_ms: int, duration_ms: int) -> int:
    return min(MAX_LONG, now_ms + duration_ms)


def _refuse(code: ErrorCode) -> NoReturn:
    raise KafkaError(code)


class TokenExpiry:
    """Removes expired tokens, from ``start`` until the timer ends. Loop thread only."""

    def __init__(self, controller: MetadataWriter, timer: Timer, config: BrokerConfig) -> None:
        self._controller = controller
        self._timer = timer
        self._interval_ms: int = config["delegation.token.expiry.check.interval.ms"]

    def start(self) -> None:
        """Start the periodic check."""
        self._timer.call_after(self._interval_ms, self._run)

    def _run(self) -> None:
        try:
            self._controller.change(lambda image: (None, removals(image, self._controller.clock.now_ms())))
        finally:
            self.start()
