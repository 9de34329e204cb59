"""The features of Kafka's releases: the names of ``metadata.version``'s levels, and the levels that come with each.

The facts are those of Kafka 4.4's MetadataVersion and of its classes of features (GroupVersion and others).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

METADATA_VERSION: Final = "metadata.version"
# The levels of metadata.version from 7 on. A release's last one is the one that it was published with.
_FIRST_LEVEL: Final = 7
_NAMES: Final = (
    "3.3-IV3",
    "3.4-IV0",
    *(f"3.5-IV{number}" for number in range(3)),
    *(f"3.6-IV{number}" for number in range(3)),
    *(f"3.7-IV{number}" for number in range(5)),
    "3.8-IV0",
    "3.9-IV0",
    *(f"4.0-IV{number}" for number in range(4)),
    *(f"4.1-IV{number}" for number in range(2)),
    *(f"4.2-IV{number}" for number in range(2)),
    "4.3-IV0",
    *(f"4.4-IV{number}" for number in range(3)),
)
_LEVELS: Final = {name: level for level, name in enumerate(_NAMES, _FIRST_LEVEL)}
# The levels of metadata.version since which a release has level 1, 2 and so on of each feature.
_SINCE: Final = {
    "eligible.leader.replicas.version": (_LEVELS["4.1-IV0"],),
    "group.version": (_LEVELS["4.0-IV0"],),
    "kraft.version": (_LEVELS["3.9-IV0"],),
    "share.version": (_LEVELS["4.2-IV0"], _LEVELS["4.4-IV0"]),
    "streams.version": (_LEVELS["4.2-IV1"],),
    # Levels 1 and 2 came with the same level.
    "transaction.version": (_LEVELS["4.0-IV2"], _LEVELS["4.0-IV2"]),
}


def metadata_level(version: str) -> int:
    """Return the level of ``4.4-IV1``, ``4.4`` or ``4.4.0``. ValueError: the version is unknown."""
    release = ".".join(version.split(".")[:2])
    names = [name for name in _NAMES if release in (name, name.partition("-")[0])]
    if not names:
        known = f"{_NAMES[0]} to {_NAMES[-1]}"
        raise ValueError(f"there is no metadata.version {version}: it is one from {known}, or a release such as 4.4")
    return _LEVELS[names[-1]]


def release_levels(version: str) -> dict[str, int]:
    """Return the level of each feature in a release. ValueError: the version is unknown."""
    level = metadata_level(version)
    return {METADATA_VERSION: level, **{name: bisect_right(since, level) for name, since in _SINCE.items()}}


def metadata_version(level: int) -> str | None:
    """Return the name of a level of ``metadata.version``; None if it is unknown."""
    place = level - _FIRST_LEVEL
    return _NAMES[place] if 0 <= place < len(_NAMES) else None


def newest_release(level: int) -> str | None:
    """Return the release of a broker whose highest ``metadata.version`` is this; ``4.4+`` if it is newer than all of these."""
    if level > _LEVELS[_NAMES[-1]]:
        return f"{_release(_NAMES[-1])}+"
    # Kafka 3.0 to 3.2 have levels 1 to 6.
    return _release(metadata_version(level) or "3.0") if level > 0 else None


def _release(name: str) -> str:
    return name.partition("-")[0]
