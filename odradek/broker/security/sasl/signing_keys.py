"""The public keys that verify tokens: a JWKS document (RFC 7517) in a file or at a URL, refreshed periodically.

No login waits for a fetch: a token is checked against the loaded keys. As in Kafka, a token with an unknown key id triggers a
fetch. The token is refused, and the client's next attempt finds the new keys.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname, urlopen

from odradek.common.logging import log

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from jwt import PyJWK

    from odradek.timing.background import Background
    from odradek.timing.clock import Clock

SCHEMES: Final = ("http", "https", "file")
# The key type of an algorithm by its first two letters: RS256, PS256, ES256, EdDSA and so on.
_FAMILIES: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_ALGORITHMS: Final = frozenset({*(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)), "EdDSA"})
Row: TypeAlias = dict[str, Any]
_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 1024 * 1024


class SigningKeys:
    """The keys at ``url``. Loop thread only, except for the fetch."""

    def __init__(
        self,
        url: str,
        *,
        refresh_ms: int,
        backoff_ms: int,
        backoff_max_ms: int,
        clock: Clock,
        background: Background,
        fetch: Callable[[str], bytes] | None = None,
    ) -> None:
        self._url = url
        self._refresh_ms = refresh_ms
        self._backoff_ms = backoff_ms
        self._backoff_max_ms = backoff_max_ms
        self._clock = clock
        self._background = background
        self._fetch = fetch or fetch_document
        self._rows: list[Row] = []
        self._is_fetching = False
        self._failures = 0
        self._fetched_ms = 0.0
        self._next_fetch_ms = 0.0

    def load(self) -> None:
        """Fetch the keys now. Raises OSError, and ValueError if the document is no JWKS document."""
        self._rows = _parsed(self._fetch(self._url))
        self._note(failed=False)

    def refresh(self) -> None:
        """Fetch the keys in another thread."""
        if self._is_fetching:
            return
        self._is_fetching = True
        self._background.run(lambda: _parsed(self._fetch(self._url)), self._fetched, name="jwks")

    def candidates(self, key_id: str | None, algorithm: str) -> list[PyJWK]:
        """Return the keys that may have signed a token with this header. Starts a fetch if one is due."""
        rows = self._rows if key_id is None else [row for row in self._rows if row.get("kid") == key_id]
        family = _FAMILIES[algorithm[:2]] if algorithm in _ALGORITHMS else None
        suitable = [row for row in rows if row["kty"] == family and row.get("alg", algorithm) == algorithm]
        found = [key for row in suitable if (key := _key(row, algorithm)) is not None]
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._next_fetch_ms or (not found and now_ms >= self._fetched_ms + self._backoff_ms):
            self.refresh()
        return found

    def _fetched(self, outcome: Future[list[Row]]) -> None:
        self._is_fetching = False
        error = outcome.exception()
        if error is None:
            self._rows = outcome.result()
        else:
            log.warn("cannot fetch the keys of tokens: the old ones stay in use", url=self._url, reason=str(error))
        self._note(failed=error is not None)

    def _note(self, *, failed: bool) -> None:
        self._failures = self._failures + 1 if failed else 0
        delay_ms = self._refresh_ms
        if failed:
            delay_ms = min(self._backoff_ms * 2 ** min(self._failures - 1, 20), self._backoff_max_ms)
        self._fetched_ms = self._clock.monotonic_ms()
        self._next_fetch_ms = self._fetched_ms + delay_ms


def fetch_document(url: str) -> bytes:
    """Return the content of a file or http(s) URL. Raises OSError, and ValueError above one megabyte."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        with open(url2pathname(parts.path), "rb") as file:  # noqa: PTH123  the path of a file URL
            data: bytes = file.read(_MOST_BYTES + 1)
    else:
        with urlopen(url, timeout=_TIMEOUT_S) as response:  # noqa: S310  its scheme is one of SCHEMES
            data = response.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError("the document is larger than a megabyte")
    return data


def _key(row: Row, algorithm: str) -> PyJWK | None:
    """Return the key for an algorithm; None if it does not fit, such as a key of another curve."""
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    try:
        return PyJWK(row, algorithm)
    except PyJWTError:
        return None


def _parsed(document: bytes) -> list[Row]:
    """Return the usable keys of a JWKS document. Raises ValueError if it has none."""
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    found = json.loads(document)
    rows: list[Row] = []
    listed = found.get("keys") if isinstance(found, dict) else None
    for row in listed if isinstance(listed, list) else ():
        # No symmetric keys: a shared secret would let every broker sign tokens.
        if not isinstance(row, dict) or row.get("kty") not in _FAMILIES.values() or row.get("use", "sig") != "sig":
            continue
        try:
            PyJWK(row)
        except PyJWTError:
            continue
        rows.append(row)
    if not rows:
        raise ValueError("the document has no public key for signatures")
    return rows
