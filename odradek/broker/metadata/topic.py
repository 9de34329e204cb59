"""A topic as the image has it."""

from dataclasses import dataclass, field
from uuid import UUID

from odradek.protocol.metadata_records import PartitionRecord


@dataclass(slots=True, eq=False)
class Topic:
    """A topic and its partitions, by number; partitions are consecutive from 0."""

    name: str
    topic_id: UUID
    partitions: dict[int, PartitionRecord] = field(default_factory=dict)
