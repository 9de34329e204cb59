"""Tables out of the raw records: ``build_tables`` adds new rows to them, ``read_table`` reads one.

A pass reads the micro-batches of ``raw`` that no earlier pass has read, and the state of the pass before: the newest row of
each key. It computes over both with Spark's window functions and writes ``tables/NAME/batch=N`` and ``state/NAME/batch=N``. It
is done when ``state/passes/N.json`` exists. An interrupted pass is repeated under the same number and replaces its output. The
state has a row for each existing group, committed offset, owned partition, transactional id, share partition and task: its size
is that of the cluster, not that of the history.

Order is always that of partition and offset. All records of a group, of a transactional id, or of a share partition are in one
partition, and ingest reads each partition in order: no record arrives late.
"""

from odradek.pipeline.tables.build import Built, build_tables
from odradek.pipeline.tables.files import read_table

__all__ = ["Built", "build_tables", "read_table"]
