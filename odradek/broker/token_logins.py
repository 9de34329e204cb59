"""Lets clients in by delegation tokens: at a broker, and at a controller's own listener, by what its image has (KIP-48)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.metadata.delegation_tokens import DelegationTokens
    from odradek.broker.metadata.image import MetadataImage
    from odradek.broker.sasl.scram import TokenCredential
    from odradek.broker.sasl.token_credentials import TokenCredentials
    from odradek.protocol.scram import ScramMechanism


class _Metadata(Protocol):
    """The cluster's metadata."""

    @property
    def image(self) -> MetadataImage:
        """What is committed: another one may take its place."""


class TokenHolder(Protocol):
    """A broker, or a controller."""

    @property
    def delegation_tokens(self) -> DelegationTokens:
        """What is decided about tokens."""

    @property
    def controller(self) -> _Metadata:
        """The metadata that the tokens are in."""


class TokenLogins:
    """What makes credentials is made, and imported, with the first client that shows a token. Loop thread only."""

    def __init__(self, holder: Callable[[], TokenHolder]) -> None:
        self._holder = holder
        self._credentials: TokenCredentials | None = None

    def find(self, token_id: str, mechanism: ScramMechanism) -> TokenCredential | None:
        """Whom a token lets in; nobody where there is no secret key."""
        holder = self._holder()
        tokens = holder.delegation_tokens
        if not tokens.is_enabled:
            return None
        if self._credentials is None:
            from odradek.broker.sasl.token_credentials import TokenCredentials

            self._credentials = TokenCredentials(lambda: holder.controller.image.kept.delegation_tokens, tokens.hmac_of)
        return self._credentials.find(token_id, mechanism)
