"""Which offset is a key's last, for the part of a log that one clean goes through: a dict whose memory is bounded.

Kafka keeps MD5 digests in a table of 24 bytes an entry. Here keys are kept as they are, the long ones by a digest that no key of
the kept kind can equal, so no two short keys are ever taken for one. An entry costs more, about 200 bytes with keys of 24:
128 MiB, nine tenths full, hold some 600,000 keys, where Kafka has room for five million. What does not fit is left to the next
clean.
"""

from hashlib import blake2b

_LONGEST_PLAIN_KEY_BYTES = 63
_DIGEST_BYTES = 64
_BYTES_HEAD = 33
# An int of more than 30 bits; a dict's share of its table when that has just grown, the old one still there.
_ENTRY_BYTES = 32 + 112


class OffsetMap:
    """Key -> last offset. ``latest_offset`` is up to where the log has been looked at, -1 before anything."""

    __slots__ = ("_budget_bytes", "_offsets", "_used_bytes", "latest_offset")

    def __init__(self, memory_bytes: int, load_factor: float) -> None:
        """At most ``load_factor`` of ``memory_bytes`` (``log.cleaner.dedupe.buffer.size``) are used, but one key always fits."""
        self._budget_bytes = int(memory_bytes * load_factor)
        self._used_bytes = 0
        self._offsets: dict[bytes, int] = {}
        self.latest_offset = -1

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        """Whether no other key fits."""
        return self._used_bytes >= self._budget_bytes and bool(self._offsets)

    @property
    def utilization(self) -> float:
        """How much of its memory is used, 1.0 being all it may use."""
        return self._used_bytes / self._budget_bytes if self._budget_bytes else 1.0

    def put(self, key: bytes, offset: int) -> None:
        """Let ``offset`` be the key's last, and the latest looked at."""
        if len(key) > _LONGEST_PLAIN_KEY_BYTES:
            key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        if key not in self._offsets:
            self._used_bytes += _ENTRY_BYTES + ((_BYTES_HEAD + len(key) + 15) & ~15)
        self._offsets[key] = offset
        self.latest_offset = offset

    def get(self, key: bytes) -> int:
        """The key's last offset; -1 where the map has none."""
        if len(key) > _LONGEST_PLAIN_KEY_BYTES:
            key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        return self._offsets.get(key, -1)
