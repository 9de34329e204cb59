"""The pipeline at scale: a synthetic history of groups and transactions, put into a broker by the wire, and the jobs over it.

``python -m benchmarks.pipeline --records 10000000`` (``make campaign NAME=pipeline-bench``) prints the table of docs/pipeline.md.
"""
