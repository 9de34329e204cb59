"""A warehouse's directories through Hadoop's file systems: new parts of ``raw``, done passes, obsolete state.

    checkpoints/ingest/commits/N       micro-batch N is in ``raw`` completely
    state/passes/N.json                pass N is done; written under another name first, then renamed

Only directories are listed, one for each micro-batch, day and topic; never rows.
"""

import json
from dataclasses import asdict, dataclass

from pyspark.sql import SparkSession

from odradek.pipeline.errors import PipelineError
from odradek.pipeline.schema import CHECKPOINTS_DIR, RAW_DIR
from odradek.pipeline.tables_schema import STATE_DIR
from odradek.pipeline.warehouse import Directory

_COMMITS = f"{CHECKPOINTS_DIR}/ingest/commits"
_PASSES = f"{STATE_DIR}/passes"
_STATES = {
    "offsets_now": "offsets_pass",
    "groups_now": "groups_pass",
    "partition_owners": "groups_pass",
    "consumer_groups": "consumer_groups_pass",
    "transactional_ids_now": "transactions_pass",
}


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass that is done: the position of the tables.

    ``raw_batch`` is the last micro-batch read, ``sampled_until_us`` the time of the last sample read, in µs since the epoch.
    The other fields are the passes that wrote the states: this one, or an earlier one if this one had no records of that kind.
    """

    number: int = -1
    raw_batch: int = -1
    sampled_until_us: int = -1
    offsets_pass: int = -1
    groups_pass: int = -1
    consumer_groups_pass: int = -1
    transactions_pass: int = -1

    def state_pass(self, name: str) -> int:
        """Return the number of the pass that wrote this state; -1 for none."""
        return int(getattr(self, _STATES[name]))


class Files:
    """The files of the warehouse ``path``."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._directory = Directory(spark, path)
        self.path = self._directory.path

    def new_raw(self, after: int) -> tuple[list[str], int]:
        """Return the directories of the complete micro-batches after ``after``, and the last complete micro-batch."""
        names = self._names(f"{_COMMITS}/*")
        last = max((int(name) for name in names if name.isdecimal()), default=-1)
        found = [
            str(path.toString())
            for path in self._directory.found(f"{RAW_DIR}/topic=*/date=*/batch=*")
            if after < int(str(path.getName()).partition("=")[2]) <= last
        ]
        return sorted(found), max(last, after)

    def has(self, directory: str) -> bool:
        """Return whether the directory exists."""
        return self._directory.exists(directory)

    def last_pass(self) -> Pass:
        """Return the newest pass that is done: the position of the tables."""
        names = [name.partition(".")[0] for name in self._names(f"{_PASSES}/*.json")]
        if not names:
            return Pass()
        return Pass(**json.loads(self._directory.read_text(f"{_PASSES}/{max(map(int, names))}.json")))

    def mark(self, done: Pass) -> None:
        """Mark the pass as done: from now on readers see its output."""
        written = f"{_PASSES}/{done.number}.json.part"
        self._directory.write_text(written, json.dumps(asdict(done)) + "\n")
        if not self._directory.rename(written, f"{_PASSES}/{done.number}.json"):
            raise PipelineError(f"another job is building the tables of {self.path}: let one of them do it")

    def forget_before(self, last: Pass) -> None:
        """Delete states and marks older than those of ``last``, the newest pass but one.

        A reader that began at that pass still has its state.
        """
        for name in _STATES:
            for path in self._directory.found(f"{STATE_DIR}/{name}/batch=*"):
                if int(str(path.getName()).partition("=")[2]) < last.state_pass(name):
                    self._directory.delete(path)
        for path in self._directory.found(f"{_PASSES}/*.json"):
            if int(str(path.getName()).partition(".")[0]) < last.number:
                self._directory.delete(path)

    def _names(self, pattern: str) -> list[str]:
        return [str(path.getName()) for path in self._directory.found(pattern)]
