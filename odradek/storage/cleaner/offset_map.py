"""Which offset is a key's last, for the part of a log that one clean goes through: a dict whose memory is bounded.

Kafka keeps MD5 digests in a table of 24 bytes an entry. Here keys are kept as they are, the long ones by a digest that no key of
the kept kind can equal, so no two short keys are ever taken for one. An entry costs more, about 200 bytes with keys of 24:
128 MiB, nine tenths full, hold some 600,000 keys, where Kafka has room for five million. What does not fit is left to the next
clean.
"""

from collections.abc import Iterable
from hashlib import blake2b

from odradek.storage.cleaner.record_spans import RecordSpan

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
    def utilization(self) -> float:
        """How much of its memory is used, 1.0 being all it may use."""
        return self._used_bytes / self._budget_bytes if self._budget_bytes else 1.0

    def put_all(self, base_offset: int, records: Iterable[RecordSpan], from_offset: int) -> bool:
        """Note the keys of a batch's ``records`` from ``from_offset`` on; False if there was no room for all."""
        offsets = self._offsets
        used_bytes, budget_bytes = self._used_bytes, self._budget_bytes
        offset = self.latest_offset
        has_room = True
        for delta, key, *_ in records:
            if key is None or base_offset + delta < from_offset:
                continue
            if used_bytes >= budget_bytes and offsets:
                has_room = False
                break
            offset = base_offset + delta
            held = key if len(key) <= _LONGEST_PLAIN_KEY_BYTES else blake2b(key, digest_size=_DIGEST_BYTES).digest()
            if held not in offsets:
                used_bytes += _ENTRY_BYTES + (_BYTES_HEAD + len(held) + 15 & ~15)
            offsets[held] = offset
        self._used_bytes = used_bytes
        self.latest_offset = offset
        return has_room

    def get(self, key: bytes) -> int:
        """The key's last offset; -1 where the map has none."""
        if len(key) > _LONGEST_PLAIN_KEY_BYTES:
            key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        return self._offsets.get(key, -1)
