"""Tables out of the raw records: ``build_tables`` adds what is new to them, ``read_table`` reads one.

A pass takes the micro-batches of ``raw`` that no pass has taken, and what the pass before left as its state: the newest row of
each key. It computes over both with Spark's window functions, writes ``tables/NAME/batch=N`` and ``state/NAME/batch=N``, and is
done when ``state/passes/N.json`` is there. One that is cut short before that is done again, under the same number, in place of
what it had written. The state has a row a group, a committed offset, an owned partition or a transactional id that is there
now: it is as large as the cluster is, however long its history.

All order is that of a record's partition and offset. The records of a group, or of a transactional id, lie in one partition, and
ingest takes each partition in order: no record is ever late.
"""

from odradek.pipeline.tables.build import Built, build_tables
from odradek.pipeline.tables.reading import read_table

__all__ = ["Built", "build_tables", "read_table"]
