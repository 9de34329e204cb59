"""``group.consumer.migration.policy``: the permitted conversions of groups."""

from enum import StrEnum


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
