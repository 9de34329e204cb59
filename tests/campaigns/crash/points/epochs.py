"""A transactional id whose epochs are nearly used up, without running 32,000 transactions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from odradek.coordinator.runtime.result import CoordinatorRecord, encode_record
from odradek.coordinator.transaction.states import LAST_EPOCH
from odradek.protocol.coordinator_records import TransactionLogKey
from odradek.storage.directories.checkpoints import CLEAN_SHUTDOWN_FILE
from odradek.storage.filesystem import RealFileSystem
from odradek.storage.log.log import Log
from odradek.storage.log.log_config import LogConfig
from tests.campaigns.crash.points.producer import TV1
from tests.campaigns.crash.points.seen import state_on_disk

if TYPE_CHECKING:
    from pathlib import Path

    from tests.campaigns.crash.points.producer import Kind


def use_up_epochs(data_dir: Path, transactional_id: str, kind: Kind) -> None:
    """Write into the log of a stopped broker that the id has few epochs left.

    With TV1 the next InitProducerId finds no epoch left. With TV2 it takes the last one, and the EndTxn after it finds none.
    Both then assign a new producer id.
    """
    value = state_on_disk(data_dir, transactional_id)
    assert value is not None
    epoch = LAST_EPOCH if kind is TV1 else LAST_EPOCH - 1
    record = CoordinatorRecord(TransactionLogKey(transactional_id), value._replace(producer_epoch=epoch))
    (directory,) = {
        path.parent for path in data_dir.glob("__transaction_state-*/*.log") if transactional_id.encode() in path.read_bytes()
    }
    topic, _, partition = directory.name.rpartition("-")
    now_ms = int(time.time() * 1000)
    log = Log.open(
        RealFileSystem(),
        str(directory),
        topic,
        int(partition),
        LogConfig(),
        clean=False,
        now_ms=now_ms,
        warn=lambda *_, **__: None,
    )
    log.coordinator_appends.append_internal([encode_record(record)], leader_epoch=log.leader_epochs.latest, now_ms=now_ms)
    log.close(clean=True, now_ms=now_ms)
    # The log does not end any more where a clean stop has left it.
    (data_dir / CLEAN_SHUTDOWN_FILE).unlink(missing_ok=True)
