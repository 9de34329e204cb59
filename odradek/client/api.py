"""An API as a caller speaks it: its key, its versions, and the classes of its messages."""

from typing import Generic, NamedTuple, TypeVar

from odradek.protocol.api_keys import NEWEST_VERSION, OLDEST_VERSION, ApiKey

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT")


class VersionRange(NamedTuple):
    """Versions from ``lowest`` to ``highest``, both included."""

    lowest: int
    highest: int


class Api(Generic[RequestT, ResponseT]):
    """An API in the versions from ``lowest`` to ``highest``; by default in all that are known.

    The newest version that the peer serves too is sent. A caller narrows the range where versions differ in what they mean:
    a field that it needs, topics named by id.
    """

    __slots__ = ("key", "versions")

    def __init__(self, key: ApiKey, lowest: int = 0, highest: int | None = None) -> None:
        self.key = key
        self.versions = VersionRange(max(lowest, OLDEST_VERSION.get(key, 0)), NEWEST_VERSION[key] if highest is None else highest)

    def __repr__(self) -> str:
        return f"{self.key.name} v{self.versions.lowest}-{self.versions.highest}"

    def common_version(self, served: VersionRange) -> int | None:
        """The newest version within both ranges; None where there is none."""
        version = min(self.versions.highest, served.highest)
        return version if version >= max(self.versions.lowest, served.lowest) else None
