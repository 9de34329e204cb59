"""The end of a transaction on one partition, as the transaction coordinator decides it and a group coordinator's log takes it."""

from typing import NamedTuple


class EndTxnMarker(NamedTuple):
    """A producer's transaction is committed or aborted; which it was is told by id and epoch.

    ``transaction_version`` 2: the epoch is one that the transaction itself did not have (KIP-890).
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    transaction_version: int = 0
