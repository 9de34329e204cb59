"""The states of a client's connection, and the transitions between them.

A connection begins ``NEW``. Nothing but ApiVersions may be sent before its answer is there, since the answer says in which
versions everything else may be. A client that logs in is ``AUTHENTICATING`` after that, and again before its session is over
(KIP-368): answers to what was sent before may still come then. ``CLOSED`` is final, whether this end closed the connection,
the peer did, or what came broke the protocol.
"""

from enum import Enum
from typing import Final


class ConnectionState(Enum):
    """Where a connection is in its life."""

    NEW = "new"
    NEGOTIATING = "negotiating"
    AUTHENTICATING = "authenticating"
    READY = "ready"
    CLOSED = "closed"


TRANSITIONS: Final[dict[ConnectionState, frozenset[ConnectionState]]] = {
    ConnectionState.NEW: frozenset({ConnectionState.NEGOTIATING, ConnectionState.CLOSED}),
    ConnectionState.NEGOTIATING: frozenset({ConnectionState.AUTHENTICATING, ConnectionState.READY, ConnectionState.CLOSED}),
    ConnectionState.AUTHENTICATING: frozenset({ConnectionState.READY, ConnectionState.CLOSED}),
    ConnectionState.READY: frozenset({ConnectionState.AUTHENTICATING, ConnectionState.CLOSED}),
    ConnectionState.CLOSED: frozenset(),
}


class IllegalTransition(RuntimeError):
    """The connection was used in a state that does not permit it: a mistake of the caller."""
