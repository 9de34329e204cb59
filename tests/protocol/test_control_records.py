"""Markers against the same batch built by way of ``records``."""

from struct import pack

import pytest

from odradek.protocol.control_records import ABORT, COMMIT, build_end_txn_marker, read_control_record
from odradek.protocol.records import Record, build_batch, read_records
from tests.cases import each_case


@each_case("commit", [True, False])
@each_case("coordinator_epoch", [-1, 0, 7, 2**31 - 1])
def test_a_marker_is_the_batch_of_its_one_control_record(commit, coordinator_epoch):
    record = Record(timestamp=1_700_000_000_000, key=pack(">hh", 0, commit), value=pack(">hi", 0, coordinator_epoch))
    expected = build_batch([record], producer_id=2**40, producer_epoch=3, transactional=True, control=True)
    assert build_end_txn_marker(2**40, 3, coordinator_epoch, commit, 1_700_000_000_000) == expected


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_is_read_as_it_was_built(commit):
    (record,) = read_records(build_end_txn_marker(1, 0, 9, commit, 5))
    assert read_control_record(record) == (COMMIT if commit else ABORT, 9)
    assert record.timestamp == 5
