"""A short run of the campaign, and that it finds a lost record, a doubled one and a group that starts over."""

import pytest
from crc32c import crc32c

from odradek.protocol.record_batch import iter_batches
from tests.campaigns.growing_out.engines import KAFKA, ODRADEK
from tests.campaigns.growing_out.inventory import differences
from tests.campaigns.growing_out.one_directory import KILL, STOP, Run, take_turns
from tests.campaigns.growing_out.processes import is_one
from tests.campaigns.growing_out.watcher import Progress
from tests.project.documents import DOCS, code_blocks

pytestmark = [pytest.mark.xdist_group("kafka-tools"), pytest.mark.timeout(300)]


def test_kafka_goes_on_where_odradek_was_killed_and_odradek_where_kafka_was(tmp_path):
    found = take_turns(tmp_path, [Run(ODRADEK, KILL), Run(KAFKA, KILL), Run(ODRADEK, STOP)])
    print(found.report())
    assert found.differences == []
    assert found.things > 50


def empty_the_last_batch(data):
    """Its header stays, as compaction may leave it: whoever wrote it notices nothing."""
    path = data / "orders-0" / f"{0:020}.log"
    batches = path.read_bytes()
    *_, (position, _) = iter_batches(batches)
    # Behind the CRC: attributes, last offset delta, timestamps, producer, sequence; and no record.
    behind_crc = batches[position + 21 : position + 57] + bytes(4)
    crc = crc32c(behind_crc).to_bytes(4, "big")
    length = len(batches[12:17] + crc + behind_crc).to_bytes(4, "big")
    path.write_bytes(batches[: position + 8] + length + batches[position + 12 : position + 17] + crc + behind_crc)


def double_the_last_batch(data):
    path = data / "orders-0" / f"{0:020}.log"
    batches = path.read_bytes()
    *_, (position, header) = iter_batches(batches)
    path.write_bytes(batches + header.next_offset.to_bytes(8, "big") + batches[position + 8 :])


def forget_all_groups(data):
    for path in data.glob("__consumer_offsets-*/*.log"):
        path.write_bytes(b"")


def lose_records_and_groups(data):
    empty_the_last_batch(data)
    forget_all_groups(data)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("plant", "complaints"),
    [
        (lose_records_and_groups, ("acknowledged orders are lost", "the group began anew")),
        (double_the_last_batch, ("has orders twice",)),
    ],
)
def test_what_is_planted_between_two_runs_is_found(tmp_path, plant, complaints):
    planted = []

    def plant_once(data):
        if not planted:
            plant(data)
        planted.append(data)

    found = take_turns(tmp_path, [Run(ODRADEK, KILL), Run(ODRADEK, STOP)], plant=plant_once, patience_s=3)
    told = "\n".join(found.differences)
    assert [complaint for complaint in complaints if complaint not in told] == []


def test_every_command_of_the_document_is_one_that_the_campaign_runs():
    lines = [line for block in code_blocks(DOCS / "growing-out.md", "console") for line in block.splitlines()]
    assert [line for line in lines if not is_one(line.removeprefix("$ "))] == []
    assert len(lines) > 10


def progress(*steps):
    watched = Progress()
    for step in steps:
        if isinstance(step, dict):
            watched.committed(step)
        elif step is None:
            watched.assigned()
        else:
            watched.delivered(0, step)
    return watched.differences


def test_a_group_may_read_again_what_it_has_not_committed():
    assert progress(0, 1, {0: 2}, 2, 3, None, 2, 3, 4, {0: 5}, None, 5) == []


def test_a_commit_whose_answer_was_lost_may_count():
    assert progress(0, 1, 2, None, 3) == []


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        ((0, 1, {0: 2}, None, 0), "began anew: orders-0 at 0, and 2 was committed"),
        ((0, 1, {0: 2}, None, 3), "missed records: orders-0 from 2 to 3"),
        ((0, 1, {0: 1}, 1), "was given orders-0 1, and not 2"),
    ],
)
def test_a_group_that_starts_over_misses_or_repeats_records_is_told(steps, complaint):
    (found,) = progress(*steps)
    assert complaint in found


def test_an_inventory_differs_by_what_has_changed_come_or_gone():
    before = {"same": 1, "changed": (1, 2), "gone": 3}
    assert list(differences(before, {"same": 1, "changed": (1, 3), "come": 4})) == [
        "changed: (1, 2), then (1, 3)",
        "come: not there, then 4",
        "gone: 3, then not there",
    ]
