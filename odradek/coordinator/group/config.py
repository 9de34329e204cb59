"""The configs of groups, the sender of a request, and the broker's log: values that operations on groups are given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The configs of groups, under Kafka's names; the defaults are Kafka's, whatever the broker's are.

    Handed out anew for each decision that needs it, since some of them change while the broker runs.
    """

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1


class MemberContext(NamedTuple):
    """The sender of a request: its client id and address as Kafka prints them (``/127.0.0.1``), and the request's version.

    ``may_see`` says of a topic's name whether the client may know of it; without it the client may know of all.
    """

    client_id: str
    client_host: str
    version: int
    may_see: Callable[[str], bool] | None = None


class GroupReports(Protocol):
    """The broker's log, as the coordinator writes to it."""

    def info(self, event: str, **fields: object) -> None:
        """Log an event that may interest an operator."""

    def warn(self, event: str, **fields: object) -> None:
        """Log a refusal or a failure that an operator should know."""
