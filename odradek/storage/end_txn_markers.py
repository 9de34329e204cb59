"""The batches of transaction markers, built once for all the partitions of a transaction."""

from typing import Final

from odradek.protocol.control_records import build_end_txn_marker
from odradek.protocol.record_batch import STAMPED_BYTES


class _LastMarker:
    """The marker that was built last: a transaction ends with the same one in each of its partitions."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # The five arguments of ``batch`` and its result, in one tuple: brokers in other threads may replace it.
        self._known: tuple[int, int, int, bool, int, bytes, bytes] = (-1, -1, -1, False, -1, b"", b"")

    def batch(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, commit: bool, now_ms: int
    ) -> tuple[bytes, bytes]:
        """The marker's batch, and its bytes behind the stamp (base offset, length, leader epoch)."""
        known = self._known
        if (
            known[0] != producer_id
            or known[1] != producer_epoch
            or known[2] != coordinator_epoch
            or known[3] != commit
            or known[4] != now_ms
        ):
            batch = build_end_txn_marker(producer_id, producer_epoch, coordinator_epoch, commit, now_ms)
            known = (producer_id, producer_epoch, coordinator_epoch, commit, now_ms, batch, batch[STAMPED_BYTES:])
            self._known = known
        return known[5], known[6]


LAST_MARKER: Final = _LastMarker()
