"""The table, second part: the broker's defaults for logs, when they are flushed and deleted, and compaction."""

from odradek.broker.config.definitions import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MAX_DOUBLE,
    MAX_LONG,
    STRING,
    ConfigDefinition,
)
from odradek.broker.config.validators import AtLeast, Between, Entries, OneOf

_Config = ConfigDefinition

CLEANUP_POLICIES = Entries("compact", "delete")
COMPRESSION_TYPES = OneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
GZIP_LEVELS = Between(1, 9, -1)
LZ4_LEVELS = Between(1, 17)
ZSTD_LEVELS = Between(-131072, 22)
TIMESTAMP_TYPES = OneOf("CreateTime", "LogAppendTime")
SMALLEST_SEGMENT = AtLeast(1048576)

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
        "log.roll.hours", INT, 168, "A segment is closed when it is this old, where log.roll.ms is not set.", AtLeast(1), "high"
    ),
    _Config(
        "log.roll.jitter.ms",
        LONG,
        None,
        "At most this, at random, is taken off log.roll.ms, to spread the closing of segments. Unset: log.roll.jitter.hours.",
        None,
        "high",
        CLUSTER_WIDE,
    ),
    _Config("log.roll.jitter.hours", INT, 0, "The same in hours, where log.roll.jitter.ms is not set.", AtLeast(0), "high"),
    _Config("log.index.size.max.bytes", INT, 10485760, "The size of a full index.", AtLeast(4), "medium", CLUSTER_WIDE),
    _Config(
        "log.index.interval.bytes",
        INT,
        4096,
        "An index gets an entry every so many bytes of log.",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.preallocate",
        BOOLEAN,
        False,
        "Whether new segments get their space at once. They do not: no effect.",
        None,
        "medium",
        CLUSTER_WIDE,
    ),
)

RECORDS = (
    _Config("message.max.bytes", INT, 1048588, "The largest batch, as it came.", AtLeast(0), "high", CLUSTER_WIDE),
    _Config(
        "compression.type",
        STRING,
        "producer",
        "How batches are compressed on disk; producer leaves them as they came.",
        COMPRESSION_TYPES,
        "high",
        CLUSTER_WIDE,
    ),
    _Config("compression.gzip.level", INT, -1, "Level of gzip; -1 is its own default.", GZIP_LEVELS, "medium", CLUSTER_WIDE),
    _Config("compression.lz4.level", INT, 9, "Level of lz4.", LZ4_LEVELS, "medium", CLUSTER_WIDE),
    _Config("compression.zstd.level", INT, 3, "Level of zstd.", ZSTD_LEVELS, "medium", CLUSTER_WIDE),
    _Config(
        "log.message.timestamp.type",
        STRING,
        "CreateTime",
        "Whose time a record bears: its producer's, or that of the append.",
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
        "A log is flushed to disk when it has so many unflushed records. The default leaves it to the system: what was "
        "acknowledged outlives the process, not the machine.",
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
    _Config("log.flush.scheduler.interval.ms", LONG, MAX_LONG, "How often logs are looked at for flushing by age.", None, "high"),
    _Config(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60000,
        "How often recovery points are written: what comes after them is read again after a crash.",
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
        "How long after the start flushing, checkpoints and retention begin.",
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
        "delete drops old segments, compact keeps the last value of each key; both may be given, and neither.",
        CLEANUP_POLICIES,
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.retention.bytes",
        LONG,
        -1,
        "Old segments go while a partition is larger than this; no limit, if negative.",
        None,
        "high",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.retention.ms",
        LONG,
        None,
        "Segments go when their newest record is this old; -1 keeps them. Unset: log.retention.minutes.",
        None,
        "high",
        CLUSTER_WIDE,
    ),
    _Config("log.retention.minutes", INT, None, "The same in minutes. Unset: log.retention.hours.", None, "high"),
    _Config("log.retention.hours", INT, 168, "The same in hours.", None, "high"),
    _Config("log.retention.check.interval.ms", LONG, 300000, "How often old segments are looked for.", AtLeast(1)),
    _Config(
        "log.segment.delete.delay.ms",
        LONG,
        60000,
        "How long the files of a dropped segment stay on disk.",
        AtLeast(0),
        "high",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.local.retention.bytes",
        LONG,
        -2,
        "Kafka's limit for what remote storage also has. There is no remote storage: no effect.",
        AtLeast(-2),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config("log.local.retention.ms", LONG, -2, "The same by age: no effect.", AtLeast(-2), "medium", CLUSTER_WIDE),
)

COMPACTION = (
    _Config("log.cleaner.enable", BOOLEAN, True, "Whether logs are compacted."),
    _Config(
        "log.cleaner.threads",
        INT,
        1,
        "Kafka's number of threads that compact. Here there is one.",
        AtLeast(1),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        MAX_DOUBLE,
        "What compaction may read and write per second.",
        None,
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        134217728,
        "Memory for the keys of one pass. The check is Kafka's: more than 1 MiB for each of its threads.",
        None,
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.io.buffer.size",
        INT,
        524288,
        "Memory to read and write with.",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.io.buffer.load.factor", DOUBLE, 0.9, "How full the memory for keys may become.", None, "medium", CLUSTER_WIDE
    ),
    _Config(
        "log.cleaner.backoff.ms",
        LONG,
        15000,
        "How long to wait when nothing is to be compacted.",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        0.5,
        "A log is compacted when so much of it was written since the last time.",
        Between(0, 1),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.delete.retention.ms",
        LONG,
        86400000,
        "How long compaction keeps a deletion mark, for readers to see it.",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        0,
        "How long a record is left alone by compaction.",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        MAX_LONG,
        "How long a record may wait for compaction, however little there is.",
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
