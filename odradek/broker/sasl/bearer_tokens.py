"""Who a bearer token lets in: one that is signed with a key of the JWKS document, or an unsecured one where that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.sasl.oauthbearer import BearerRefused
from odradek.broker.sasl.tokens import InvalidToken, Parts, Rules, Token, check_signed, check_unsecured, subject_of, take_apart

if TYPE_CHECKING:
    from odradek.broker.sasl.signing_keys import SigningKeys
    from odradek.timing.clock import Clock


class SignedTokens:
    """Part of ``oauthbearer.Validate``."""

    def __init__(self, keys: SigningKeys, rules: Rules, clock: Clock) -> None:
        self.keys = keys
        self._rules = rules
        self._clock = clock

    def __call__(self, token: str) -> Token:
        """Raises BearerRefused, InvalidToken."""
        parts = take_apart(token)
        try:
            self._ensure_signed(token, parts)
            return check_signed(parts.claims, self._rules, self._clock.now_ms())
        except InvalidToken as error:
            raise BearerRefused(error, subject_of(parts.claims, self._rules.subject_claim)) from error

    def _ensure_signed(self, token: str, parts: Parts) -> None:
        from jwt import PyJWS
        from jwt.exceptions import PyJWTError

        algorithm, key_id = parts.header.get("alg"), parts.header.get("kid")
        if not isinstance(algorithm, str) or algorithm == "none" or not parts.is_signed:
            raise InvalidToken("it is not signed")
        if key_id is not None and not isinstance(key_id, str):
            raise InvalidToken("its key id is none")
        candidates = self.keys.candidates(key_id, algorithm)
        if not candidates:
            raise InvalidToken("it is signed with a key that is not in the JWKS document")
        for key in candidates:
            try:
                PyJWS().decode(token, key, algorithms=[algorithm])
            except (PyJWTError, ValueError, TypeError):
                # Whatever stands in a token, it is the token's fault.
                continue
            return
        raise InvalidToken("its signature is wrong")


class UnsecuredTokens:
    """The same for tokens that anybody can make: for tests."""

    def __init__(self, rules: Rules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock

    def __call__(self, token: str) -> Token:
        """Raises BearerRefused, InvalidToken."""
        parts = take_apart(token)
        try:
            return check_unsecured(parts, self._rules, self._clock.now_ms())
        except InvalidToken as error:
            raise BearerRefused(error, subject_of(parts.claims, self._rules.subject_claim)) from error
