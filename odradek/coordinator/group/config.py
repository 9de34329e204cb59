"""The inputs of operations on groups: the configs, the sender of a request, the broker's log, the policy of migrations."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The configs of groups, under Kafka's names and with Kafka's defaults, whatever the broker's defaults are.

    Each decision gets the current configs, as some of them change while the broker runs.
    """

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1


class MemberContext(NamedTuple):
    """The sender of a request: its client id, its address as Kafka prints it (``/127.0.0.1``), and the request's version.

    ``may_see`` tells whether the client may know of a topic. Without it, the client may know of all topics.
    """

    client_id: str
    client_host: str
    version: int
    may_see: Callable[[str], bool] | None = None


class GroupReports(Protocol):
    """The broker's log, for the coordinator's lines."""

    def info(self, event: str, **fields: object) -> None:
        """Log an event that may interest an operator."""

    def warn(self, event: str, **fields: object) -> None:
        """Log a refusal or a failure that an operator should know."""


class MigrationPolicy(StrEnum):
    """Kafka's ``ConsumerGroupMigrationPolicy``."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def permits_upgrade(self) -> bool:
        """Return whether a classic group with members may become a consumer group."""
        return self in {MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL}

    @property
    def permits_downgrade(self) -> bool:
        """Return whether a consumer group with members may become a classic group."""
        return self in {MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL}
