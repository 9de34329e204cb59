"""The table: topic configs, and every broker config and topic config by name.

An unset topic config falls back to the broker config of the same meaning.
"""

from odradek.common.config.definitions import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    LIST,
    LONG,
    MAX_LONG,
    STRING,
    AtLeast,
    Between,
    ConfigDefinition,
    ConfigType,
    ThrottledReplicas,
    Validator,
    Value,
)
from odradek.common.config.ignored import IGNORED
from odradek.common.config.table_groups import QUOTA_SECTIONS, TELEMETRY_SECTIONS
from odradek.common.config.table_log import (
    CLEANUP_POLICIES,
    COMPRESSION_TYPES,
    GZIP_LEVELS,
    LIMITED_BATCHES,
    LOG_SECTIONS,
    LZ4_LEVELS,
    NO_REMOTE_STORAGE,
    NOT_PREALLOCATED,
    RECORD_SIZES,
    SMALLEST_SEGMENT,
    TIMESTAMP_TYPES,
    ZSTD_LEVELS,
)
from odradek.common.config.table_quorum import QUORUM_SECTIONS
from odradek.common.config.table_security import AUTHORIZER_SECTIONS, SASL_SECTIONS, SSL_SECTIONS, TOKEN_SECTIONS
from odradek.common.config.table_server import SERVER_SECTIONS
from odradek.common.config.table_share_groups import SHARE_SECTIONS

_REMOTE = "For Kafka's remote storage"
_WEEK_MS = 604800000


def _config(
    name: str,
    kind: ConfigType,
    default: Value,
    server_default: str | None,
    doc: str,
    valid: Validator | None = None,
    *,
    unused_reason: str = "",
) -> ConfigDefinition:
    return ConfigDefinition(name, kind, default, doc, valid, server_default=server_default, unused_reason=unused_reason)


TOPIC_DEFINITIONS = (
    _config("cleanup.policy", LIST, ("delete",), "log.cleanup.policy", "delete, compact, both or neither.", CLEANUP_POLICIES),
    _config("compression.type", STRING, "producer", "compression.type", "The compression of batches on disk.", COMPRESSION_TYPES),
    _config("compression.gzip.level", INT, -1, "compression.gzip.level", "The level of gzip.", GZIP_LEVELS),
    _config("compression.lz4.level", INT, 9, "compression.lz4.level", "The level of lz4.", LZ4_LEVELS),
    _config("compression.zstd.level", INT, 3, "compression.zstd.level", "The level of zstd.", ZSTD_LEVELS),
    _config(
        "delete.retention.ms",
        LONG,
        86400000,
        "log.cleaner.delete.retention.ms",
        "How long compaction keeps a tombstone.",
        AtLeast(0),
    ),
    _config(
        "file.delete.delay.ms",
        LONG,
        60000,
        "log.segment.delete.delay.ms",
        "How long the files of a deleted segment stay on disk.",
        AtLeast(0),
    ),
    _config(
        "flush.messages",
        LONG,
        MAX_LONG,
        "log.flush.interval.messages",
        "Flush when this many records are unflushed. 1: an fsync before every acknowledgement.",
        AtLeast(1),
    ),
    _config(
        "flush.ms", LONG, MAX_LONG, "log.flush.interval.ms", "Flush when the oldest unflushed record is this old.", AtLeast(0)
    ),
    _config(
        "follower.replication.throttled.replicas",
        LIST,
        (),
        None,
        "Replicas that fetch no faster than follower.replication.throttled.rate.",
        ThrottledReplicas(),
    ),
    _config(
        "index.interval.bytes", INT, 4096, "log.index.interval.bytes", "An index gets one entry for this many bytes.", AtLeast(0)
    ),
    ConfigDefinition(
        "internal.segment.bytes", INT, None, "segment.bytes without its lower bound, for tests.", AtLeast(1), internal=True
    ),
    _config(
        "leader.replication.throttled.replicas",
        LIST,
        (),
        None,
        "Replicas that, while they lead, are fetched from no faster than leader.replication.throttled.rate.",
        ThrottledReplicas(),
    ),
    _config(
        "local.retention.bytes",
        LONG,
        -2,
        "log.local.retention.bytes",
        f"{_REMOTE}.",
        AtLeast(-2),
        unused_reason=NO_REMOTE_STORAGE,
    ),
    _config(
        "local.retention.ms", LONG, -2, "log.local.retention.ms", f"{_REMOTE}.", AtLeast(-2), unused_reason=NO_REMOTE_STORAGE
    ),
    _config(
        "max.compaction.lag.ms",
        LONG,
        MAX_LONG,
        "log.cleaner.max.compaction.lag.ms",
        "The longest a record may wait for compaction.",
        AtLeast(1),
    ),
    _config(
        "max.decompressed.message.bytes",
        INT,
        2147483639,
        "max.decompressed.message.bytes",
        "Kafka's limit for a record of a compressed batch.",
        RECORD_SIZES,
        unused_reason=LIMITED_BATCHES,
    ),
    _config(
        "max.message.bytes", INT, 1048588, "message.max.bytes", "The largest record batch, as sent by the producer.", AtLeast(0)
    ),
    _config(
        "message.timestamp.after.max.ms",
        LONG,
        3600000,
        "log.message.timestamp.after.max.ms",
        "A record further ahead of the broker's clock is refused.",
        AtLeast(0),
    ),
    _config(
        "message.timestamp.before.max.ms",
        LONG,
        MAX_LONG,
        "log.message.timestamp.before.max.ms",
        "A record further behind the broker's clock is refused.",
        AtLeast(0),
    ),
    _config(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        "log.message.timestamp.type",
        "The timestamp of a record: the producer's (CreateTime) or the time of the append (LogAppendTime).",
        TIMESTAMP_TYPES,
    ),
    _config(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        0.5,
        "log.cleaner.min.cleanable.ratio",
        "Compact when this share was written since the last clean.",
        Between(0, 1),
    ),
    _config(
        "min.compaction.lag.ms",
        LONG,
        0,
        "log.cleaner.min.compaction.lag.ms",
        "How long a record is exempt from compaction. At most max.compaction.lag.ms.",
        AtLeast(0),
    ),
    _config(
        "min.insync.replicas",
        INT,
        1,
        "min.insync.replicas",
        "The number of replicas that must have a record before acks=all is answered.",
        AtLeast(1),
    ),
    _config(
        "errors.deadletterqueue.group.enable",
        BOOLEAN,
        False,
        None,
        "Lets share groups use the topic as their dead-letter queue.",
    ),
    _config(
        "preallocate",
        BOOLEAN,
        False,
        "log.preallocate",
        "Kafka's preallocation of segment files.",
        unused_reason=NOT_PREALLOCATED,
    ),
    _config(
        "remote.copy.lag.bytes",
        LONG,
        -1,
        "log.remote.copy.lag.bytes",
        f"{_REMOTE}.",
        AtLeast(-1),
        unused_reason=NO_REMOTE_STORAGE,
    ),
    _config("remote.copy.lag.ms", LONG, 0, "log.remote.copy.lag.ms", f"{_REMOTE}.", AtLeast(-1), unused_reason=NO_REMOTE_STORAGE),
    _config("remote.log.copy.disable", BOOLEAN, False, None, f"{_REMOTE}.", unused_reason=NO_REMOTE_STORAGE),
    _config("remote.log.delete.on.disable", BOOLEAN, False, None, f"{_REMOTE}.", unused_reason=NO_REMOTE_STORAGE),
    _config("remote.storage.enable", BOOLEAN, False, None, f"{_REMOTE}, which odradek does not have: true is refused."),
    _config(
        "retention.bytes", LONG, -1, "log.retention.bytes", "Old segments are deleted while the partition is larger than this."
    ),
    _config(
        "retention.ms",
        LONG,
        _WEEK_MS,
        "log.retention.ms",
        "A segment is deleted when its newest record is this old. -1: it is kept.",
        AtLeast(-1),
    ),
    _config(
        "segment.bytes", INT, 1073741824, "log.segment.bytes", "A segment is closed before it grows past this.", SMALLEST_SEGMENT
    ),
    _config("segment.index.bytes", INT, 10485760, "log.index.size.max.bytes", "The size of a full index.", AtLeast(4)),
    _config(
        "segment.jitter.ms",
        LONG,
        0,
        "log.roll.jitter.ms",
        "The most that is subtracted from segment.ms, so that segments close at different times.",
        AtLeast(0),
    ),
    _config("segment.ms", LONG, _WEEK_MS, "log.roll.ms", "A segment is closed when it is this old.", AtLeast(1)),
    _config(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "unclean.leader.election.enable",
        "Lets an out-of-sync replica become leader.",
    ),
)


SECTIONS = (
    *(SERVER_SECTIONS + SHARE_SECTIONS + SSL_SECTIONS + SASL_SECTIONS + TOKEN_SECTIONS + QUORUM_SECTIONS + AUTHORIZER_SECTIONS),
    *(QUOTA_SECTIONS + TELEMETRY_SECTIONS + LOG_SECTIONS),
)
BROKER_CONFIGS: dict[str, ConfigDefinition] = {row.name: row for _, rows in SECTIONS for row in rows}
TOPIC_CONFIGS: dict[str, ConfigDefinition] = {row.name: row for row in TOPIC_DEFINITIONS}
BROKER_DEFAULTS: dict[str, Value] = {name: row.default for name, row in BROKER_CONFIGS.items()}

# Configs with the same meaning in several units: the finer unit takes precedence, whatever their order in a file.
_FAMILIES = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_SYNONYMS = {name: family for family in _FAMILIES for name in family} | {
    # One direction only: flushing by age falls back to the scheduler's interval, which is also a config of its own.
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}


def synonyms(name: str) -> tuple[str, ...]:
    """Return the names that decide a broker config, by precedence."""
    return _SYNONYMS.get(name, (name,))


def update_mode(name: str) -> str:
    """Return a broker config's update mode. Unknown keys may change while it runs, as in Kafka: plugins may have them."""
    definition = BROKER_CONFIGS.get(name)
    if definition is not None:
        return definition.update_mode
    ignored = IGNORED.get(name)
    return CLUSTER_WIDE if ignored is None else ignored.update_mode
