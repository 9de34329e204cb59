"""The pipeline at scale: a synthetic history of groups and transactions is produced to a broker, and the jobs run over it.

``python -m benchmarks.pipeline --records 10000000`` (``make campaign NAME=pipeline-bench``) prints the table of
docs/pipeline.md.
"""
