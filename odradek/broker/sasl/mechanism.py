"""What the authenticator knows of a mechanism: one exchange of tokens with one client."""

from collections.abc import Callable
from typing import Protocol


class AuthenticationFailed(Exception):
    """The client has not shown who it is.

    ``told`` is what the client learns; None: no more than that its credentials are invalid, since the reason might tell who is
    there. ``cause`` is for the broker's log. Neither has a secret in it. ``user`` is who the client says that it is.
    """

    def __init__(self, cause: str, *, told: str | None = None, user: str | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.told = told
        self.user = user


class SaslServer(Protocol):
    """One exchange. What is known of the client is valid when the exchange ``is_complete``."""

    @property
    def is_complete(self) -> bool:
        """Whether the client has shown who it is."""

    @property
    def user(self) -> str:
        """The name of its principal."""

    @property
    def expires_ms(self) -> int | None:
        """When the credential expires, in wall time; None: never."""

    @property
    def by_token(self) -> bool:
        """Whether the client has shown a delegation token."""

    @property
    def refusal(self) -> AuthenticationFailed | None:
        """Why it has failed already, where the client has been told so in a token and is to say that it knows."""

    def evaluate(self, token: bytes) -> bytes:
        """The answer to the client's token. Raises AuthenticationFailed."""


class Mechanism(Protocol):
    """A mechanism as a listener has it: ``begin`` an exchange. ``max_reauth_ms`` is ``connections.max.reauth.ms``, 0 for none."""

    @property
    def max_reauth_ms(self) -> int:
        """How long a session may last; 0: as long as its credential."""

    @property
    def begin(self) -> Callable[[], SaslServer]:
        """Makes the server's end of one exchange."""
