"""PySpark jobs over the coordinators' own logs: the history of groups and transactions, of odradek or any Apache Kafka.

The jobs talk over the wire, like any client. Of the broker's code they import ``protocol.coordinator_records`` alone. They need
the extra ``odradek[pipeline]``. This module imports nothing, so that a command can report a missing extra.

    <warehouse>/_cluster.json                   the id of the cluster
    <warehouse>/raw/topic=T/date=D/*.parquet    every decoded record (``schema.RAW``); append-only
    <warehouse>/quarantine/                     records that could not be decoded (``schema.QUARANTINE``)
    <warehouse>/end_offsets/                    end offsets of the partitions that groups commit to (``schema.END_OFFSETS``)
    <warehouse>/tables/NAME/  findings/         derived from the above
    <warehouse>/checkpoints/JOB/                each job's progress
"""
