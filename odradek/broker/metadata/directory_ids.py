"""Directory ids that name no directory (KIP-858), and whether a broker has a directory."""

from typing import TYPE_CHECKING, Final
from uuid import UUID

if TYPE_CHECKING:
    from odradek.protocol.metadata_records.nodes import RegisterBrokerRecord

# The replica is of a time before directories had ids, has no place yet, or its place is lost.
MIGRATING: Final = UUID(int=0)
UNASSIGNED: Final = UUID(int=1)
LOST: Final = UUID(int=2)
_FIRST_FREE: Final = 100


def is_reserved(directory: UUID | None) -> bool:
    """Whether an id can never be a directory's."""
    return directory is None or directory.int < _FIRST_FREE


def has_online(broker: "RegisterBrokerRecord", directory: UUID) -> bool:
    """Whether a directory of ``broker`` is not known to be offline: before KIP-858 none is registered."""
    if directory in (MIGRATING, UNASSIGNED):
        return True
    return directory != LOST and (not broker.log_dirs or directory in broker.log_dirs)


def default_directory(broker: "RegisterBrokerRecord | None") -> UUID:
    """The directory of a replica that is new on ``broker``: the broker chooses, unless it has only one."""
    if broker is None:
        return UNASSIGNED
    if not broker.log_dirs:
        return MIGRATING
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED
