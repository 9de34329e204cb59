"""The table, first part: the broker's identity, its listeners and connections, requests, topics, groups, transactions."""

from odradek.common.config.definitions import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LIST,
    LONG,
    MAX_INT,
    NOT_KAFKAS,
    SHORT,
    STRING,
    AtLeast,
    ConfigDefinition,
    Entries,
    OneOf,
    SizeOrSystems,
)
from odradek.common.config.table_groups import CONSUMER_GROUPS

# Of requests that are being received.
MOST_REQUEST_BYTES = 512 * 1024 * 1024
_Config = ConfigDefinition
_ONE_BROKER = "one broker holds the only replica"
_BUFFER = SizeOrSystems()
_NO_QUEUE = "the thread that reads a request begins it, so none is queued"
_NO_PURGE = "a request that has completed leaves the purgatory at once"

IDENTITY = (
    _Config(
        "node.id",
        INT,
        1,
        "The id of this broker. It is written into the data directory, which no broker of another id may open.",
        AtLeast(0),
        "high",
        kafka_default="none: it must be set",
        difference="a broker on its own needs no configuration",
    ),
    _Config("broker.id", INT, -1, "The older name of node.id. If both are set they must agree.", None, "high"),
    _Config("broker.rack", STRING, None, "The rack of this broker, told to clients in Metadata and DescribeCluster."),
    _Config(
        "log.dirs",
        LIST,
        None,
        "The data directories, separated by commas. A new partition is placed in the directory with the fewest.",
        Entries(least=1),
        "high",
    ),
    _Config(
        "log.dir",
        LIST,
        None,
        "The data directories, if log.dirs is not set. Without either, the directory is the platform's for user data.",
        Entries(least=1),
        "high",
        kafka_default="/tmp/kafka-logs",  # noqa: S108  Kafka's default, not ours
        difference="a folder for temporary files is emptied at the next boot",
    ),
    _Config(
        "metadata.log.dir",
        STRING,
        None,
        "The directory of the metadata log. Unset: the first of log.dirs. The broker cannot run without it.",
        None,
        "high",
    ),
    _Config(
        "metadata.log.segment.bytes",
        INT,
        1073741824,
        "A segment of the metadata log is closed before it grows past this.",
        AtLeast(8388608),
        "high",
    ),
    _Config(
        "metadata.log.segment.ms", LONG, 604800000, "A segment of the metadata log is closed when it is this old.", None, "high"
    ),
    _Config(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        20971520,
        "A snapshot of the metadata is written when this much has been appended since the last one.",
        AtLeast(1),
        "high",
    ),
    _Config(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        3600000,
        "A snapshot of the metadata is written with the first change when the last one is this old. 0: not for its age.",
        AtLeast(0),
        "high",
    ),
    _Config(
        "metadata.max.retention.bytes",
        LONG,
        104857600,
        "The oldest snapshot, and the log up to the next one, go while log and snapshots are larger. Negative: no limit.",
        None,
        "high",
    ),
    _Config(
        "metadata.max.retention.ms",
        LONG,
        604800000,
        "The oldest snapshot, and the log up to the next one, go when it is older. Negative: no limit. The newest stays.",
        None,
        "high",
    ),
)

LISTENERS = (
    _Config(
        "listeners",
        LIST,
        ("PLAINTEXT://127.0.0.1:9092",),
        "Where the broker listens: NAME://HOST:PORT, separated by commas. No host means every interface, port 0 a free port.",
        Entries(least=1),
        "high",
        kafka_default="PLAINTEXT://:9092",
        difference="a broker without authentication is not exposed to the network by default",
    ),
    _Config(
        "advertised.listeners",
        LIST,
        None,
        "The addresses that clients connect to, where they differ from the listeners, as behind a port mapping. "
        "Port 0 stands for the port that the listener is bound to.",
        Entries(least=1),
        "high",
    ),
    _Config(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The security protocol of each listener name: NAME:PROTOCOL, separated by commas. A controller's is PLAINTEXT or SSL.",
        None,
        "low",
    ),
    _Config(
        "inter.broker.listener.name",
        STRING,
        None,
        "The listener for connections between brokers; the name in security.inter.broker.protocol if none is named. A broker "
        "that is alone has none.",
    ),
    _Config(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        "The listener for connections between brokers, where its name is that of its protocol.",
        OneOf("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    _Config(
        "controller.listener.names",
        LIST,
        (),
        "Listeners of controllers. A node that is its own controller opens those of its listeners that are named here, and "
        "other brokers may join it. Without one it is alone.",
        Entries(),
        "high",
        kafka_default="none: it must be set",
        difference="a broker alone has no listener for controllers",
    ),
)

CONNECTIONS = (
    _Config("socket.listen.backlog.size", INT, 50, "Connections that may wait to be accepted, per listener.", AtLeast(1)),
    _Config(
        "socket.send.buffer.bytes", INT, 102400, "SO_SNDBUF of client sockets; -1 leaves the system's choice.", _BUFFER, "high"
    ),
    _Config(
        "socket.receive.buffer.bytes", INT, 102400, "SO_RCVBUF of client sockets; -1 leaves the system's choice.", _BUFFER, "high"
    ),
    _Config(
        "socket.busy.poll.us",
        INT,
        200,
        "How long the broker polls for the next request after a response before it sleeps, in microseconds, as long as "
        "clients do send one within that time. 0: it sleeps at once. Polling costs processor time and saves the wake-up.",
        AtLeast(0),
        "low",
        kafka_default=NOT_KAFKAS,
        difference="one thread serves all clients, and waking it costs more than serving many a request",
    ),
    _Config(
        "socket.request.max.bytes", INT, 104857600, "The largest request; a larger one closes its connection.", AtLeast(1), "high"
    ),
    _Config("connections.max.idle.ms", LONG, 600000, "A connection idle for this long is closed; never, if negative."),
    _Config(
        "max.connections", INT, MAX_INT, "The most open connections, over all listeners.", AtLeast(0), "medium", CLUSTER_WIDE
    ),
    _Config(
        "max.connections.per.ip",
        INT,
        MAX_INT,
        "The most open connections from one address. 0 requires exceptions in max.connections.per.ip.overrides.",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "Exceptions to max.connections.per.ip: ADDRESS:COUNT, separated by commas; an address or host name.",
        None,
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "max.connection.creation.rate",
        INT,
        MAX_INT,
        "The most new connections per second, over all listeners and ten seconds. The first request of one above that waits.",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "queued.max.requests",
        INT,
        500,
        "Requests that wait for a thread, before Kafka stops reading more.",
        AtLeast(1),
        "high",
        no_use=_NO_QUEUE,
    ),
    _Config(
        "queued.max.request.bytes",
        LONG,
        MOST_REQUEST_BYTES,
        "The most memory of large requests that are being received; beyond this, reading pauses. No limit unless positive.",
        kafka_default="-1",
        difference="thousands of connections with a part of a request each would take the machine's memory",
    ),
    _Config(
        "queued.max.response.bytes",
        LONG,
        128 * 1024 * 1024,
        "The most memory of large responses that clients have not taken, except for one; beyond this, further ones wait. No limit"
        " unless positive.",
        kafka_default="none: Kafka has no such config",
        difference="small requests that have responses of megabytes would take the machine's memory",
    ),
)

REQUESTS = (
    _Config(
        "fetch.max.bytes", INT, 57671680, "The most that one Fetch response carries, whatever the client asks for.", AtLeast(1024)
    ),
    _Config(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        "The most fetch sessions kept (KIP-227); further clients send full requests.",
        AtLeast(0),
    ),
    _Config(
        "max.request.partition.size.limit",
        INT,
        2000,
        "The most partitions in one page of DescribeTopicPartitions (KIP-966).",
        AtLeast(1),
    ),
    _Config(
        "fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        "Completed delayed Fetch requests that Kafka keeps before it purges them.",
        no_use=_NO_PURGE,
    ),
    _Config(
        "producer.purgatory.purge.interval.requests",
        INT,
        1000,
        "Completed delayed Produce requests that Kafka keeps before it purges them.",
        no_use=_NO_PURGE,
    ),
    _Config(
        "delete.records.purgatory.purge.interval.requests",
        INT,
        1,
        "Completed delayed DeleteRecords requests that Kafka keeps before it purges them.",
        no_use=_NO_PURGE,
    ),
)

TOPICS = (
    _Config(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        "Whether a missing topic is created when a client asks for it by name.",
        None,
        "high",
    ),
    _Config(
        "delete.topic.enable", BOOLEAN, True, "Whether topics can be deleted; otherwise DeleteTopics is refused.", None, "high"
    ),
    _Config("num.partitions", INT, 1, "Partitions of a topic created without a number of partitions.", AtLeast(1)),
    _Config(
        "default.replication.factor",
        INT,
        1,
        "Replicas of a topic created without a number of them. A broker alone can hold one.",
    ),
    _Config(
        "min.insync.replicas",
        INT,
        1,
        "Replicas that must have a record before acks=all is answered.",
        AtLeast(1),
        "high",
        CLUSTER_WIDE,
    ),
    _Config(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "Whether an out-of-sync replica may become leader. A broker alone has none.",
        None,
        "high",
        CLUSTER_WIDE,
    ),
)

GROUPS = (
    _Config("group.min.session.timeout.ms", INT, 6000, "The shortest session timeout a group member may ask for."),
    _Config("group.max.session.timeout.ms", INT, 1800000, "The longest session timeout a group member may ask for."),
    _Config(
        "group.initial.rebalance.delay.ms",
        INT,
        0,
        "How long the first rebalance of an empty group waits for more members.",
        kafka_default="3000",
        difference="on a laptop and in tests every new group would lose three seconds, and a second member is rare",
    ),
    _Config("group.max.size", INT, MAX_INT, "The most members in one group of the classic protocol.", AtLeast(1)),
    *CONSUMER_GROUPS,
    _Config("offset.metadata.max.bytes", INT, 4096, "The longest metadata that may be committed with an offset.", None, "high"),
    _Config(
        "offsets.commit.timeout.ms",
        INT,
        5000,
        "How long what a group's coordinator has decided may wait for the other replicas of the offsets topic.",
        AtLeast(1),
        "high",
    ),
    _Config("offsets.load.buffer.size", INT, 5242880, "Bytes read at a time when offsets are loaded.", AtLeast(1), "high"),
    _Config(
        "offsets.retention.minutes",
        INT,
        10080,
        "How long committed offsets are kept after their group became empty.",
        AtLeast(1),
        "high",
    ),
    _Config("offsets.retention.check.interval.ms", LONG, 600000, "How often expired offsets are looked for.", AtLeast(1), "high"),
    _Config(
        "offsets.topic.num.partitions",
        INT,
        50,
        "Partitions of __consumer_offsets. It decides the partition of each group, and must not be changed later.",
        AtLeast(1),
        "high",
    ),
    _Config(
        "offsets.topic.replication.factor",
        SHORT,
        1,
        "Replicas of __consumer_offsets; one, where the broker is alone.",
        AtLeast(1),
        "high",
        kafka_default="3",
        difference=_ONE_BROKER,
    ),
    _Config("offsets.topic.segment.bytes", INT, 104857600, "segment.bytes of __consumer_offsets.", AtLeast(1), "high"),
    _Config(
        "offsets.topic.compression.codec",
        INT,
        0,
        "Compression of __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        OneOf(0, 1, 2, 3, 4),
        "high",
    ),
)

TRANSACTIONS = (
    _Config(
        "producer.id.expiration.ms",
        INT,
        86400000,
        "How long a partition remembers a producer after its last write.",
        AtLeast(1),
        "low",
        CLUSTER_WIDE,
    ),
    _Config(
        "producer.id.expiration.check.interval.ms",
        INT,
        600000,
        "How often expired producers are looked for.",
        AtLeast(1),
        "low",
        internal=True,
    ),
    _Config(
        "transaction.max.timeout.ms", INT, 900000, "The longest transaction timeout a producer may ask for.", AtLeast(1), "high"
    ),
    _Config("transactional.id.expiration.ms", INT, 604800000, "How long an unused transactional id is kept.", AtLeast(1), "high"),
    _Config(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10000,
        "How often transactions past their timeout are looked for.",
        AtLeast(1),
        "low",
    ),
    _Config(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3600000,
        "How often expired transactional ids are looked for.",
        AtLeast(1),
        "low",
    ),
    _Config(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Whether a transactional write to a partition that is not in the transaction is refused (KIP-890).",
        None,
        "low",
        CLUSTER_WIDE,
    ),
    _Config(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        "Whether producers may have transactions without a timeout, ended by an external manager (KIP-939).",
        None,
        "low",
    ),
    _Config(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "Partitions of __transaction_state. It decides the partition of each transactional id, and must not be changed later.",
        AtLeast(1),
        "high",
    ),
    _Config(
        "transaction.state.log.replication.factor",
        SHORT,
        1,
        "Replicas of __transaction_state; one, where the broker is alone.",
        AtLeast(1),
        "high",
        kafka_default="3",
        difference=_ONE_BROKER,
    ),
    _Config(
        "transaction.state.log.min.isr",
        INT,
        1,
        "min.insync.replicas of __transaction_state; 1, where the broker is alone.",
        AtLeast(1),
        "high",
        kafka_default="2",
        difference=_ONE_BROKER,
    ),
    _Config("transaction.state.log.segment.bytes", INT, 104857600, "segment.bytes of __transaction_state.", AtLeast(1), "high"),
    _Config(
        "transaction.state.log.load.buffer.size",
        INT,
        5242880,
        "Bytes read at a time when transactions are loaded.",
        AtLeast(1),
        "high",
    ),
)

SERVER_SECTIONS = (
    ("The broker itself", IDENTITY),
    ("Listeners", LISTENERS),
    ("Connections", CONNECTIONS),
    ("Requests", REQUESTS),
    ("Topics", TOPICS),
    ("Groups and offsets", GROUPS),
    ("Producers and transactions", TRANSACTIONS),
)
