"""A topic in the image, the rules for its name (Kafka's ``Topic`` class), and the names of internal topics."""

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_records import PartitionRecord


@dataclass(slots=True, eq=False)
class Topic:
    """A topic and its partitions by number, consecutive from 0."""

    name: str
    topic_id: UUID
    partitions: dict[int, PartitionRecord] = field(default_factory=dict)


MAX_NAME_LENGTH = 249

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
CLUSTER_METADATA_TOPIC_ID: Final = UUID(int=1)
CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC})

_LEGAL_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def topic_name_error(name: str) -> KafkaError | None:
    """Return INVALID_TOPIC_EXCEPTION, or None for a valid topic name."""
    problem = None
    if not name:
        problem = "it is empty"
    elif name in {".", ".."}:
        problem = f"'{name}' is a directory name"
    elif len(name) > MAX_NAME_LENGTH:
        problem = f"'{name}' has {len(name)} characters, but at most {MAX_NAME_LENGTH} are allowed"
    elif not _LEGAL_CHARACTERS.issuperset(name):
        problem = f"'{name}' has characters other than ASCII letters and digits, '.', '_' and '-'"
    return None if problem is None else KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Invalid topic name: {problem}.")


def validate_topic_name(name: str) -> None:
    """Raise KafkaError(INVALID_TOPIC_EXCEPTION) unless ``name`` is a valid topic name."""
    error = topic_name_error(name)
    if error is not None:
        raise error


def has_collision_chars(name: str) -> bool:
    """Return whether ``name`` has characters that look alike in metric names."""
    return "." in name or "_" in name


def unify_collision_chars(name: str) -> str:
    """Return ``name`` as metrics show it."""
    return name.replace(".", "_")
