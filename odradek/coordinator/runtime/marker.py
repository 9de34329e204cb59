"""The end of a transaction on one partition: decided by the transaction coordinator, appended to a group coordinator's log."""

from typing import NamedTuple


class EndTxnMarker(NamedTuple):
    """The commit or abort of a producer's transaction, which id and epoch identify.

    With ``transaction_version`` 2 the epoch is one above the transaction's own epoch (KIP-890).
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int = 0
