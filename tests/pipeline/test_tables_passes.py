"""Passes: the tables are the same however the history was cut into them, and whatever cut them short."""

from pathlib import Path

import pytest

from odradek.pipeline.errors import NoRecords, PipelineError
from odradek.pipeline.tables import Built, build_tables, files, read_table
from odradek.pipeline.tables.files import Files, Pass, Writer
from odradek.pipeline.tables.schema import TABLES
from tests.pipeline.raw_by_hand import History, at, put_raw, put_samples
from tests.pipeline.tables_story import Tables, whole_history

# In seconds of the history: what is told until then is a micro-batch. The last one is a day, after everything.
_CUTS = (8, 86_400)


def _put(spark, warehouse: str, batch: int, history: History, since: float, until: float) -> None:
    put_raw(spark, warehouse, batch, [row for row in history.rows if at(since) < row["timestamp"] <= at(until)], files=2)
    put_samples(spark, warehouse, [row for row in history.samples if at(since) < row["sampled_at"] <= at(until)])


def _contents(warehouse: str) -> list[tuple[str, bytes]]:
    """The bytes of all tables' files, whose names are Spark's, by directory and number."""
    files = [path for top in ("tables", "state") for path in Path(warehouse, top).rglob("*.parquet")]
    return sorted((str(path.parent.relative_to(warehouse)) + path.name[:10], path.read_bytes()) for path in files)


class _CutShort(Exception):
    """As a kill is, for the job."""


def _cut_short(monkeypatch, spark, warehouse: str, after_writes: int) -> None:
    """Build, and end after so many writes."""
    left = [after_writes]
    write = Writer._write

    def counted(path, rows, order):
        if not left[0]:
            raise _CutShort
        left[0] -= 1
        return write(path, rows, order)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "_write", staticmethod(counted))
        with pytest.raises(_CutShort):
            build_tables(spark, warehouse)


def test_a_history_in_two_passes_the_second_cut_short_before_gives_the_tables_of_one(
    spark, warehouse, tables: Tables, monkeypatch
):
    history = whole_history()
    before = -1.0
    for batch, until in enumerate(_CUTS):
        _put(spark, warehouse, batch, history, before, until)
        if batch:
            seen = Tables(spark, warehouse).everything()
            _cut_short(monkeypatch, spark, warehouse, 8)
            assert Tables(spark, warehouse).everything() == seen
        build_tables(spark, warehouse)
        before = until
    assert Tables(spark, warehouse).everything() == tables.everything()
    # Who began to read before the last pass ended can go on.
    assert sorted(path.name for path in Path(warehouse, "state", "offsets_now").iterdir()) == ["batch=0", "batch=1"]


def test_a_pass_killed_before_its_mark_writes_the_same_again_byte_for_byte(
    spark, warehouse, story_warehouse: str, fixed_partitions, monkeypatch
):
    history = whole_history()
    put_raw(spark, warehouse, 0, history.rows, files=4)
    put_samples(spark, warehouse, history.samples)
    with monkeypatch.context() as patch:

        def cut_short(_self, _done):
            raise _CutShort

        patch.setattr(Files, "mark", cut_short)
        with pytest.raises(_CutShort):
            build_tables(spark, warehouse)
    # Other files, in another order, and the same tables.
    expected = _contents(story_warehouse)
    assert len(expected) > len(TABLES)
    assert _contents(warehouse) == expected
    assert all(read_table(spark, warehouse, name).isEmpty() for name in TABLES)


def test_many_records_are_spread_over_more_partitions_and_give_the_same_tables(spark, warehouse, tables: Tables, monkeypatch):
    history = whole_history()
    put_raw(spark, warehouse, 0, history.rows)
    put_samples(spark, warehouse, history.samples)
    monkeypatch.setattr(files, "_RECORDS_A_PARTITION", -(-len(history.rows) // 5))
    build_tables(spark, warehouse)
    assert Tables(spark, warehouse).everything() == tables.everything()
    parts = {path.name[:10] for path in Path(warehouse, "tables").rglob("part-*.parquet")}
    assert parts == {f"part-{number:05}" for number in range(5)}
    assert spark.conf.get("spark.sql.shuffle.partitions") == "1"


def test_what_ingest_is_still_writing_is_left_for_the_next_pass_and_samples_alone_are_one(spark, warehouse):
    history = History()
    history.commit("g", 1, 1)
    put_raw(spark, warehouse, 0, history.rows, whole=False)
    assert build_tables(spark, warehouse) == Built()
    put_raw(spark, warehouse, 0, history.rows)
    assert build_tables(spark, warehouse) == Built(records=1)
    for number in range(2):
        history.sample(10 + number, 10 + number)
        # Once more, as where ingest began a micro-batch anew.
        put_samples(spark, warehouse, history.samples[-1:] * 2)
        assert build_tables(spark, warehouse) == Built(samples=2)
    assert build_tables(spark, warehouse) == Built()
    history.transaction("t", "Ongoing", 20, 0, start=20)
    put_raw(spark, warehouse, 1, history.rows[-1:])
    assert build_tables(spark, warehouse) == Built(records=1)
    assert [row.committed_offset for row in read_table(spark, warehouse, "offset_commits").collect()] == [1]
    assert sorted(row.lag for row in read_table(spark, warehouse, "lag").collect()) == [9, 10]
    # A state is that of the last pass that had records of its kind; marks older than the pass before are gone.
    assert [row.committed_offset for row in read_table(spark, warehouse, "offsets_now").collect()] == [1]
    assert [row.transactional_id for row in read_table(spark, warehouse, "open_transactions").collect()] == ["t"]
    assert sorted(path.name for path in Path(warehouse, "state").glob("*_now/*")) == ["batch=0", "batch=3"]
    assert sorted(path.name for path in Path(warehouse, "state", "passes").glob("*.json")) == ["2.json", "3.json"]


def test_a_warehouse_without_records_is_told(spark, warehouse):
    with pytest.raises(NoRecords, match="has no records: run odradek pipeline ingest first"):
        build_tables(spark, warehouse)


def test_where_ingest_found_nothing_there_is_nothing_to_do(spark, warehouse):
    Path(warehouse, "checkpoints", "ingest").mkdir(parents=True)
    assert build_tables(spark, warehouse) == Built()


def test_a_second_job_that_ends_the_same_pass_is_told(spark, warehouse):
    files = Files(spark, warehouse)
    files.mark(Pass(number=0))
    with pytest.raises(PipelineError, match="another job is building the tables"):
        files.mark(Pass(number=0))


def test_a_table_that_is_not_there_is_empty_and_one_that_never_will_be_is_refused(spark, warehouse):
    assert {name: read_table(spark, warehouse, name).schema.names for name in TABLES} == {
        name: schema.names for name, schema in TABLES.items()
    }
    with pytest.raises(KeyError):
        read_table(spark, warehouse, "offsets")
