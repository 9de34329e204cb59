"""The broker with a fault that the bank must find: now and then it answers as if it had appended, or it leaves a log uncompacted.

    python -m tests.campaigns.soak.faulty_broker FAULT NUMBER serve ...

is ``odradek serve``, interpreted, that puts the fault into every so many requests.
"""

from __future__ import annotations

import sys
from itertools import count
from typing import TYPE_CHECKING, Any

from odradek.__main__ import start
from odradek.broker.handlers import txn_offset_commit
from odradek.broker.replica.log_cleaner import LogCleaner
from odradek.coordinator.runtime.hashing import partition_for
from odradek.protocol.errors import ErrorCode
from odradek.storage.append_info import AppendInfo
from odradek.storage.log import Log
from tests.broker_process import BrokerProcess
from tests.campaigns.soak.bank import LEDGER, ORDERS, orders_of
from tests.campaigns.soak.segments import COORDINATORS
from tests.campaigns.soak.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable


class FaultyBroker(BrokerProcess):
    """A broker with the fault of this name in every so many requests."""

    def use(self, fault: str, every: int) -> FaultyBroker:
        self.program = ("-m", __name__, fault, str(every))
        return self


def _unwritten(topics: Collection[str], every: int) -> None:
    """A batch of these topics is acknowledged, and not in the log."""
    append, numbers = Log.append, count(1)

    def faulty(log: Log, records: Any, **options: Any) -> AppendInfo:
        if log.topic not in topics or next(numbers) % every:
            return append(log, records, **options)
        last = log.log_end_offset - 1
        return AppendInfo(last, last, -1, log.log_start_offset, False)

    Log.append = faulty


def _uncommitted(every: int) -> None:
    """A transaction's offsets are acknowledged; they are not in the log."""
    commit, numbers = txn_offset_commit._commit, count(1)

    def faulty(runtime: Any, request: Any, respond: Callable[[Any], None], verdict: ErrorCode) -> None:
        if verdict != ErrorCode.NONE or next(numbers) % every:
            commit(runtime, request, respond, verdict)
        else:
            respond(None)

    txn_offset_commit._commit = faulty


def _uncompacted(group: str) -> None:
    """The cleaner passes by the partition that has a group's offsets, without a word."""
    passed_by = COORDINATORS[0], partition_for(group, SETTINGS["offsets.topic.num.partitions"])
    cleanable = LogCleaner._cleanable

    def faulty(cleaner: LogCleaner, logs: Iterable[Log]) -> list[Log]:
        return [log for log in cleanable(cleaner, logs) if log.topic_partition != passed_by]

    LogCleaner._cleanable = faulty


FAULTS = {
    "ledger-without-append": lambda every: _unwritten({LEDGER}, every),
    "orders-without-append": lambda every: _unwritten({topic for topic, _ in ORDERS}, every),
    "offsets-without-append": _uncommitted,
    "offsets-without-compaction": lambda _: _uncompacted(orders_of("librdkafka")),
}
# One of how many requests has the fault in the campaign. The next commit of a group's offsets makes up for one that is missing.
OFTEN = {
    "ledger-without-append": 100,
    "orders-without-append": 1_000,
    "offsets-without-append": 3,
    "offsets-without-compaction": 1,
}


def main() -> None:
    """Put the fault in, then run the command."""
    fault, every = sys.argv[1], int(sys.argv[2])
    del sys.argv[1:3]
    FAULTS[fault](every)
    start()


if __name__ == "__main__":
    main()
