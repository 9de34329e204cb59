"""How many records a micro-batch has, as its checkpoint says."""

import json

import pytest

from odradek.pipeline.ingest import Checkpoint, IngestOptions, ingest


@pytest.fixture
def checkpoint(spark, tmp_path):
    for name, offsets in (("sources/0/0", [0, 5]), ("offsets/0", [10, 7]), ("offsets/1", [10, 107])):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("v1\n{}\n" + json.dumps({"t": dict(enumerate(offsets))}))
    (tmp_path / "offsets" / "2").write_text("-")
    return Checkpoint(spark, str(tmp_path))


@pytest.mark.parametrize(("batch", "offsets"), [(0, 12), (1, 100), (2, None), (7, None)])
def test_a_micro_batch_goes_from_the_one_before_to_its_end(checkpoint, batch, offsets):
    assert checkpoint.offsets_in(batch) == offsets


def test_the_next_record_is_read_behind_the_last_micro_batch_that_is_done(checkpoint, tmp_path):
    assert checkpoint.position() == {("t", 0): 0, ("t", 1): 5}
    (tmp_path / "commits").mkdir()
    for number in (0, 1):
        (tmp_path / "commits" / str(number)).write_text("v1")
        (tmp_path / "commits" / f".{number}.crc").write_text("")
    assert checkpoint.position() == {("t", 0): 10, ("t", 1): 107}


def test_so_it_is_in_a_checkpoint_of_sparks(spark, life, warehouse):
    life.produce("orders", b"1")
    life.commit("g", "orders", 1)
    done = ingest(spark, IngestOptions(life.broker.address, warehouse))
    assert Checkpoint(spark, f"{warehouse}/checkpoints/ingest").offsets_in(0) == done.records
