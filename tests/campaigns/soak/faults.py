"""Faults that the bank must find: now and then a broker answers as if it had appended, or it leaves a log uncompacted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.broker.api import txn_offset_commit
from odradek.broker.replica.log_cleaner import LogCleaner
from odradek.coordinator.runtime.result import CoordinatorResult
from odradek.protocol.hashing import partition_for
from odradek.storage.log.log import Log
from odradek.storage.log.log_writer import AppendInfo
from tests.campaigns.planted import Faults, is_due
from tests.campaigns.soak.bank import LEDGER, ORDERS, orders_of
from tests.campaigns.soak.segments import COORDINATORS
from tests.campaigns.soak.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

FAULTS = Faults()
_PASSED_BY = COORDINATORS[0], partition_for(orders_of("librdkafka"), SETTINGS["offsets.topic.num.partitions"])


def _unwritten(topics: Collection[str]) -> Callable[..., Any]:
    """A batch of these topics is acknowledged, and not in the log."""

    def faulty(append: Any, log: Log, records: Any, **options: Any) -> Any:
        if log.topic not in topics or not is_due():
            return append(log, records, **options)
        last = log.log_end_offset - 1
        return AppendInfo(last, last, -1, log.log_start_offset, False)

    return faulty


def _uncommitted(commit: Any, *arguments: Any) -> Any:
    """A transaction's offsets are acknowledged; they are not in the log."""
    result = commit(*arguments)
    return CoordinatorResult([], result.response) if is_due() else result


def _uncompacted(cleanable: Any, cleaner: LogCleaner, logs: Iterable[Log]) -> list[Log]:
    """The cleaner passes by the partition that has a group's offsets, without a word."""
    return [log for log in cleanable(cleaner, logs) if log.topic_partition != _PASSED_BY]


FAULTS.wrap("ledger-without-append", Log, "append", _unwritten({LEDGER}))
FAULTS.wrap("orders-without-append", Log, "append", _unwritten({topic for topic, _ in ORDERS}))
FAULTS.wrap("offsets-without-append", txn_offset_commit, "commit_offsets_in_transaction", _uncommitted)
FAULTS.wrap("offsets-without-compaction", LogCleaner, "_cleanable", _uncompacted)
# One of how many requests has the fault in the campaign. The next commit of a group's offsets makes up for one that is missing.
OFTEN = {
    "ledger-without-append": 100,
    "orders-without-append": 1_000,
    "offsets-without-append": 3,
    "offsets-without-compaction": 1,
}
