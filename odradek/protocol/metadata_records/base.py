"""Values with a special meaning in metadata records."""

from typing import Final
from uuid import UUID

# Kafka's zero id: no id, or an unassigned directory.
ZERO_ID: Final = UUID(int=0)
# PartitionChangeRecord: the field stays the same.
NO_LEADER_CHANGE: Final = -2
NO_RECOVERY_STATE_CHANGE: Final = -1
