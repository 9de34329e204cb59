"""The jobs on a Spark standalone cluster, a master and two workers: ``python -m tests.campaigns.pipeline_cluster``.

All processes run on this machine, out of the PySpark distribution. The package reaches the workers as a zip, as
docs/pipeline.md describes. Over the same history, a run on ``local[1]`` and a run on the cluster give the same tables, byte for
byte, with two exceptions. Samples of end offsets depend on their moment, so one run uses the other's. The order in which a
Parquet footer lists a column's encodings is ignored: it differs between JVMs.
"""
