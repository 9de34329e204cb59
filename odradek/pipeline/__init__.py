"""PySpark jobs over the coordinators' own logs: what a cluster's groups and transactions did, of odradek or any Apache Kafka.

The jobs talk over the wire like any user, and share with the broker the package ``protocol.coordinator_records`` and nothing
else. They need the extra ``odradek[pipeline]``; this module imports nothing, so that a command can say so where it is missing.

    <warehouse>/_cluster.json                   whose records these are
    <warehouse>/raw/topic=T/date=D/*.parquet    every record, decoded (``schema.RAW``); only ever added to
    <warehouse>/quarantine/                     the records that could not be decoded (``schema.QUARANTINE``)
    <warehouse>/end_offsets/                    where the partitions that groups commit to ended (``schema.END_OFFSETS``)
    <warehouse>/tables/NAME/  findings/         what is made of these
    <warehouse>/checkpoints/JOB/                how far a job is
"""
