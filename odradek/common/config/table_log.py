"""The table, second part: the broker's defaults for logs: segments, records, flushing, retention, compaction."""

from odradek.common.config.definitions import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MAX_DOUBLE,
    MAX_LONG,
    STRING,
    AtLeast,
    Between,
    ConfigDefinition,
    Entries,
    OneOf,
)

_Config = ConfigDefinition

CLEANUP_POLICIES = Entries("compact", "delete")
COMPRESSION_TYPES = OneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
GZIP_LEVELS = Between(1, 9, -1)
LZ4_LEVELS = Between(1, 17)
ZSTD_LEVELS = Between(-131072, 22)
TIMESTAMP_TYPES = OneOf("CreateTime", "LogAppendTime")
NO_REMOTE_STORAGE = "there is no remote storage"
LIMITED_BATCHES = "decompression is limited by batch"
NOT_PREALLOCATED = "files are not preallocated"
SMALLEST_SEGMENT = AtLeast(1048576)
RECORD_SIZES = Between(1, 2147483639)

SEGMENTS = (
    _Config(
        "log.segment.bytes",
        INT,
        1073741824,
        "A segment is closed before it grows past this.",
        SMALLEST_SEGMENT,
        "high",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.roll.ms", LONG, None, "A segment is closed when it is this old. Unset: log.roll.hours.", None, "high", CLUSTER_WIDE
    ),
    _Config(
        "log.roll.hours", INT, 168, "A segment is closed when it is this old. Used if log.roll.ms is not set.", AtLeast(1), "high"
    ),
    _Config(
        "log.roll.jitter.ms",
        LONG,
        None,
        "The most that is subtracted from log.roll.ms, so that segments close at different times. Unset: log.roll.jitter.hours.",
        None,
        "high",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.roll.jitter.hours", INT, 0, "log.roll.jitter.ms in hours. Used if log.roll.jitter.ms is not set.", AtLeast(0), "high"
    ),
    _Config("log.index.size.max.bytes", INT, 10485760, "The size of a full index.", AtLeast(4), "medium", CLUSTER_WIDE),
    _Config(
        "log.index.interval.bytes",
        INT,
        4096,
        "An index gets one entry for this many bytes of log.",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.preallocate",
        BOOLEAN,
        False,
        "Kafka's preallocation of segment files.",
        None,
        "medium",
        CLUSTER_WIDE,
        unused_reason=NOT_PREALLOCATED,
    ),
)

RECORDS = (
    _Config(
        "message.max.bytes", INT, 1048588, "The largest record batch, as sent by the producer.", AtLeast(0), "high", CLUSTER_WIDE
    ),
    _Config(
        "max.decompressed.message.bytes",
        INT,
        2147483639,
        "Kafka's limit for a record of a compressed batch.",
        RECORD_SIZES,
        "medium",
        CLUSTER_WIDE,
        unused_reason=LIMITED_BATCHES,
    ),
    _Config(
        "compression.type",
        STRING,
        "producer",
        "The compression of batches on disk. producer keeps the producer's compression.",
        COMPRESSION_TYPES,
        "high",
        CLUSTER_WIDE,
    ),
    _Config("compression.gzip.level", INT, -1, "The level of gzip. -1: gzip's own default.", GZIP_LEVELS, "medium", CLUSTER_WIDE),
    _Config("compression.lz4.level", INT, 9, "The level of lz4.", LZ4_LEVELS, "medium", CLUSTER_WIDE),
    _Config("compression.zstd.level", INT, 3, "The level of zstd.", ZSTD_LEVELS, "medium", CLUSTER_WIDE),
    _Config(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        "The timestamp of a record: the producer's (CreateTime) or the time of the append (LogAppendTime).",
        TIMESTAMP_TYPES,
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.message.timestamp.before.max.ms",
        LONG,
        MAX_LONG,
        "A record older than the broker's clock by more than this is refused (CreateTime only).",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.message.timestamp.after.max.ms",
        LONG,
        3600000,
        "A record ahead of the broker's clock by more than this is refused (CreateTime only).",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
)

FLUSHING = (
    _Config(
        "log.flush.interval.messages",
        LONG,
        MAX_LONG,
        "A log is flushed to disk when it has this many unflushed records. The default leaves flushing to the system: "
        "acknowledged records survive a crash of the process, not of the machine.",
        AtLeast(1),
        "high",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.flush.interval.ms",
        LONG,
        None,
        "A log is flushed when its oldest unflushed record is this old. Unset: log.flush.scheduler.interval.ms.",
        None,
        "high",
        CLUSTER_WIDE,
    ),
    _Config("log.flush.scheduler.interval.ms", LONG, MAX_LONG, "How often logs are checked for flushing by age.", None, "high"),
    _Config(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60000,
        "How often recovery points are written. After a crash, recovery starts reading the log there.",
        AtLeast(0),
        "high",
    ),
    _Config(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60000,
        "How often log start offsets are written.",
        AtLeast(0),
        "high",
    ),
    _Config(
        "log.initial.task.delay.ms",
        LONG,
        30000,
        "The delay of flushing, checkpoints and retention after the start.",
        AtLeast(0),
        "low",
        internal=True,
    ),
)

RETENTION = (
    _Config(
        "log.cleanup.policy",
        LIST,
        ("delete",),
        "delete drops old segments. compact keeps the last value of each key. You can set both or neither.",
        CLEANUP_POLICIES,
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.retention.bytes",
        LONG,
        -1,
        "Old segments are deleted while a partition is larger than this. Negative: no limit.",
        None,
        "high",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.retention.ms",
        LONG,
        None,
        "A segment is deleted when its newest record is this old. -1: it is kept. Unset: log.retention.minutes.",
        None,
        "high",
        CLUSTER_WIDE,
    ),
    _Config("log.retention.minutes", INT, None, "log.retention.ms in minutes. Unset: log.retention.hours.", None, "high"),
    _Config("log.retention.hours", INT, 168, "log.retention.ms in hours.", None, "high"),
    _Config("log.retention.check.interval.ms", LONG, 300000, "How often logs are checked for old segments.", AtLeast(1)),
    _Config(
        "log.segment.delete.delay.ms",
        LONG,
        60000,
        "How long the files of a deleted segment stay on disk.",
        AtLeast(0),
        "high",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.local.retention.bytes",
        LONG,
        -2,
        "Kafka's limit for the local part of a log with remote storage.",
        AtLeast(-2),
        "medium",
        CLUSTER_WIDE,
        unused_reason=NO_REMOTE_STORAGE,
    ),
    _Config(
        "log.local.retention.ms",
        LONG,
        -2,
        "log.local.retention.bytes by age.",
        AtLeast(-2),
        "medium",
        CLUSTER_WIDE,
        unused_reason=NO_REMOTE_STORAGE,
    ),
    _Config(
        "log.remote.copy.lag.bytes",
        LONG,
        -1,
        "How much newer data a segment needs before Kafka copies it to remote storage.",
        AtLeast(-1),
        "medium",
        CLUSTER_WIDE,
        unused_reason=NO_REMOTE_STORAGE,
    ),
    _Config(
        "log.remote.copy.lag.ms",
        LONG,
        0,
        "log.remote.copy.lag.bytes by age.",
        AtLeast(-1),
        "medium",
        CLUSTER_WIDE,
        unused_reason=NO_REMOTE_STORAGE,
    ),
)

COMPACTION = (
    _Config("log.cleaner.enable", BOOLEAN, True, "Turns log compaction on."),
    _Config(
        "log.cleaner.threads",
        INT,
        1,
        "The number of Kafka's cleaner threads.",
        AtLeast(1),
        "medium",
        CLUSTER_WIDE,
        unused_reason="there is one cleaner",
    ),
    _Config(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        MAX_DOUBLE,
        "The most that compaction reads and writes per second.",
        None,
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        134217728,
        "Memory for the keys of one clean. As in Kafka, it must be more than 1 MiB for each thread.",
        None,
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.io.buffer.size",
        INT,
        524288,
        "Memory for reading and writing during compaction.",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        0.9,
        "How full the memory for keys may get: 0.9 is 90 percent.",
        None,
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.backoff.ms",
        LONG,
        15000,
        "How long the cleaner sleeps when no log needs compaction.",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        0.5,
        "A log is compacted when this share of it was written since the last clean.",
        Between(0, 1),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.delete.retention.ms",
        LONG,
        86400000,
        "How long compaction keeps a tombstone, so that readers see it.",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        0,
        "How long a record is exempt from compaction.",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        MAX_LONG,
        "The longest a record may wait for compaction, however few new records there are.",
        AtLeast(1),
        "medium",
        CLUSTER_WIDE,
    ),
)

LOG_SECTIONS = (
    ("Segments", SEGMENTS),
    ("Records", RECORDS),
    ("Flushing", FLUSHING),
    ("Retention", RETENTION),
    ("Compaction", COMPACTION),
)
