"""The source of all facts for one user: a client of the cluster, this broker, and its watch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.client.cluster_client import ClusterClient
    from odradek.page.watch import Watch
    from odradek.testing.listening import ListeningBroker

Partition = tuple[str, int]


class FactError(Exception):
    """A fact that cannot be shown. ``reason`` is one line for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Missing(FactError):
    """There is no such topic, partition, group or transactional id, or the user may not know of it."""


class Denied(FactError):
    """The user may not see this."""


class Unavailable(FactError):
    """The broker or its cluster does not answer at the moment. A later call may succeed."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source for one user.

    ``cluster`` is the client that is logged in as the user, with ``PAGE_CLIENT_ID`` as its client id. ``broker`` and ``watch``
    are this broker's, shared by all users. Loop thread only.
    """

    cluster: ClusterClient
    broker: ListeningBroker
    watch: Watch
