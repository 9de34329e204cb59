"""What the broker's configuration says about groups, and who a request comes from: what the deciding code is handed."""

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
    """Who asks: the client's id and address as Kafka prints them (``/127.0.0.1``), and the version of the request."""

    client_id: str
    client_host: str
    version: int


class GroupReports(Protocol):
    """Where the coordinator's lines go: the broker's own log."""

    def info(self, event: str, **fields: object) -> None:
        """Something an operator may want to know."""

    def warn(self, event: str, **fields: object) -> None:
        """Something that was refused or went wrong, and that an operator should know."""
