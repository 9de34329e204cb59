"""The jobs on a Spark standalone cluster, a master and two workers: ``python -m tests.campaigns.pipeline_cluster``.

All of it are processes of this machine, out of the PySpark distribution, and the package reaches the workers as a zip, as
docs/pipeline.md says. Over the same history a run on ``local[1]`` and a run there give tables that are the same byte for byte;
only the samples of partitions' ends, which are of the moment they are taken at, are taken from the one run for the other, and the
order in which a Parquet footer lists a column's encodings is left out: it is another in each JVM.
"""
