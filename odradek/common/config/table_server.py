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
    one_replica,
)
from odradek.common.config.table_groups import GROUPS

# The memory for requests that are being received.
MOST_REQUEST_BYTES = 512 * 1024 * 1024
_Config = ConfigDefinition
_BUFFER = SizeOrSystems()
_NO_QUEUE = "the thread that reads a request also starts it, so none is queued"
_NO_PURGE = "completed requests leave the purgatory at once"

IDENTITY = (
    _Config(
        "node.id",
        INT,
        1,
        "The id of this broker. A broker with another id cannot open its data directory.",
        AtLeast(0),
        "high",
        kafka_default="none: it must be set",
        difference="a broker on its own needs no configuration",
    ),
    _Config("broker.id", INT, -1, "The older name of node.id. If both are set, they must agree.", None, "high"),
    _Config("broker.rack", STRING, None, "The rack of this broker. Metadata and DescribeCluster return it to clients."),
    _Config(
        "log.dirs",
        LIST,
        None,
        "The data directories, separated by commas. A new partition goes to the directory with the fewest partitions.",
        Entries(least=1),
        "high",
    ),
    _Config(
        "log.dir",
        LIST,
        None,
        "The data directories if log.dirs is not set. If neither is set: the platform's directory for user data.",
        Entries(least=1),
        "high",
        kafka_default="/tmp/kafka-logs",  # noqa: S108  Kafka's default, not ours
        difference="a folder for temporary files is emptied at boot",
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
        "A metadata snapshot is written when this much has been appended since the last one.",
        AtLeast(1),
        "high",
    ),
    _Config(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        3600000,
        "When the last metadata snapshot is this old, the next change writes a new one. 0: age does not matter.",
        AtLeast(0),
        "high",
    ),
    _Config(
        "metadata.max.retention.bytes",
        LONG,
        104857600,
        "While the metadata log and its snapshots are larger than this, the oldest snapshot and the log up to the next snapshot "
        "are deleted. Negative: no limit.",
        None,
        "high",
    ),
    _Config(
        "metadata.max.retention.ms",
        LONG,
        604800000,
        "A metadata snapshot older than this is deleted, with the log up to the next snapshot. The newest snapshot stays. "
        "Negative: no limit.",
        None,
        "high",
    ),
)

LISTENERS = (
    _Config(
        "listeners",
        LIST,
        ("PLAINTEXT://127.0.0.1:9092",),
        "The addresses the broker listens on: NAME://HOST:PORT, separated by commas. No host: every interface. Port 0: a free "
        "port.",
        Entries(least=1),
        "high",
        kafka_default="PLAINTEXT://:9092",
        difference="a broker without authentication stays off the network by default",
    ),
    _Config(
        "advertised.listeners",
        LIST,
        None,
        "The addresses clients connect to, if they differ from listeners, for example behind a port mapping. Port 0: the port "
        "the listener is bound to.",
        Entries(least=1),
        "high",
    ),
    _Config(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The security protocol of each listener name: NAME:PROTOCOL, separated by commas. A controller's listener without an "
        "entry uses PLAINTEXT.",
        None,
        "low",
    ),
    _Config(
        "inter.broker.listener.name",
        STRING,
        None,
        "The listener for connections between brokers. Unset: the name in security.inter.broker.protocol. A broker alone has "
        "none.",
    ),
    _Config(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        "The listener for connections between brokers, if it is named after its protocol.",
        OneOf("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    _Config(
        "controller.listener.names",
        LIST,
        (),
        "The names of the controllers' listeners. A node that is its own controller opens its listeners of these names, and "
        "other brokers can join it. Without one it is a broker alone.",
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
        "How long the broker polls for the next request after a response before it sleeps, in microseconds. It polls only while "
        "clients send one within that time. 0: it sleeps at once.",
        AtLeast(0),
        "low",
        kafka_default=NOT_KAFKAS,
        difference="one thread serves all clients, and waking it costs more than many requests do",
    ),
    _Config(
        "socket.request.max.bytes", INT, 104857600, "The largest request. A larger one closes its connection.", AtLeast(1), "high"
    ),
    _Config("connections.max.idle.ms", LONG, 600000, "A connection idle for this long is closed. Negative: never."),
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
        "Exceptions to max.connections.per.ip: ADDRESS:COUNT, separated by commas. ADDRESS may be a host name.",
        None,
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "max.connection.creation.rate",
        INT,
        MAX_INT,
        "The most new connections per second over all listeners, measured over ten seconds. Above it, a connection's first "
        "request waits.",
        AtLeast(0),
        "medium",
        CLUSTER_WIDE,
    ),
    _Config(
        "queued.max.requests",
        INT,
        500,
        "The most requests that Kafka queues for a thread before it stops reading.",
        AtLeast(1),
        "high",
        unused_reason=_NO_QUEUE,
    ),
    _Config(
        "queued.max.request.bytes",
        LONG,
        MOST_REQUEST_BYTES,
        "The most memory for large requests that are being received. Beyond it, reading pauses. 0 or negative: no limit.",
        kafka_default="-1",
        difference="thousands of connections, each with part of a request, would exhaust the machine's memory",
    ),
    _Config(
        "queued.max.response.bytes",
        LONG,
        128 * 1024 * 1024,
        "The most memory for large responses that clients have not taken. Beyond it, at most one response goes on, and the "
        "others wait. 0 or negative: no limit.",
        kafka_default="none: Kafka has no such config",
        difference="small requests with responses of megabytes would exhaust the machine's memory",
    ),
)

REQUESTS = (
    _Config(
        "fetch.max.bytes", INT, 57671680, "The most data in one Fetch response, whatever the client asks for.", AtLeast(1024)
    ),
    _Config(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        "The most fetch sessions kept (KIP-227). Further clients send full requests.",
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
        "Completed Fetch requests that Kafka keeps in its purgatory.",
        unused_reason=_NO_PURGE,
    ),
    _Config(
        "producer.purgatory.purge.interval.requests",
        INT,
        1000,
        "Completed Produce requests that Kafka keeps in its purgatory.",
        unused_reason=_NO_PURGE,
    ),
    _Config(
        "delete.records.purgatory.purge.interval.requests",
        INT,
        1,
        "Completed DeleteRecords requests that Kafka keeps in its purgatory.",
        unused_reason=_NO_PURGE,
    ),
)

TOPICS = (
    _Config(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        "Creates a missing topic when a client asks for it by name.",
        None,
        "high",
    ),
    _Config("delete.topic.enable", BOOLEAN, True, "Lets clients delete topics. If false, DeleteTopics is refused.", None, "high"),
    _Config("num.partitions", INT, 1, "The number of partitions of a topic created without one.", AtLeast(1)),
    _Config(
        "default.replication.factor",
        INT,
        1,
        "The replication factor of a topic created without one. A broker alone can hold one replica.",
    ),
    _Config(
        "min.insync.replicas",
        INT,
        1,
        "The number of replicas that must have a record before acks=all is answered.",
        AtLeast(1),
        "high",
        CLUSTER_WIDE,
    ),
    _Config(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "Lets an out-of-sync replica become leader. A broker alone has no such replica.",
        None,
        "high",
        CLUSTER_WIDE,
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
        "How often the broker looks for transactions past their timeout.",
        AtLeast(1),
        "low",
    ),
    _Config(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3600000,
        "How often the broker looks for expired transactional ids.",
        AtLeast(1),
        "low",
    ),
    _Config(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Refuses a transactional write to a partition that is not in the transaction (KIP-890).",
        None,
        "low",
        CLUSTER_WIDE,
    ),
    _Config(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        "Lets producers have transactions without a timeout that an external manager ends (KIP-939).",
        None,
        "low",
    ),
    _Config(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "The number of partitions of __transaction_state. It decides each transactional id's partition, so you must not change "
        "it later.",
        AtLeast(1),
        "high",
    ),
    one_replica("transaction.state.log.replication.factor", SHORT, "3", "The replication factor of __transaction_state."),
    one_replica("transaction.state.log.min.isr", INT, "2", "min.insync.replicas of __transaction_state."),
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
