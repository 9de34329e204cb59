"""The table, configs of a node's role in a cluster and of its quorum."""

from odradek.common.config.definitions import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LIST,
    LONG,
    MAX_LONG,
    STRING,
    AtLeast,
    ConfigDefinition,
    Entries,
    OneOf,
)

ROLES = ("broker", "controller")
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_Config = ConfigDefinition

QUORUM = (
    _Config(
        "process.roles",
        LIST,
        ROLES,
        "The roles of this process: a broker with controllers elsewhere, the controller of a cluster, or both.",
        Entries(*ROLES, least=1),
        "high",
        kafka_default="none: it must be set",
        difference="a broker on its own needs no configuration",
    ),
    _Config(
        "controller.quorum.voters",
        LIST,
        (),
        "The controllers, as ID@HOST:PORT. A node that is its own controller can only name itself.",
        Entries(),
        "high",
    ),
    _Config(
        "controller.quorum.bootstrap.servers",
        LIST,
        (),
        "Controllers to ask about the quorum, as HOST:PORT. A node that is its own controller can only name its own controller "
        "listener.",
        Entries(),
        "high",
    ),
)

MEMBER = (
    _Config(
        "broker.heartbeat.interval.ms",
        INT,
        2000,
        "How often a broker sends its controller a heartbeat, in milliseconds.",
        AtLeast(1),
    ),
    _Config(
        "broker.session.timeout.ms",
        INT,
        9000,
        "How long a controller waits for a heartbeat. The broker waits half as long for an answer.",
        AtLeast(1),
    ),
    _Config(
        "initial.broker.registration.timeout.ms",
        INT,
        60000,
        "How long a broker tries to register before its start fails.",
        AtLeast(1),
    ),
    _Config(
        "controller.quorum.fetch.timeout.ms",
        INT,
        2000,
        "How long the quorum's leader may be silent before the broker looks for another leader.",
        AtLeast(1),
        "high",
    ),
    _Config(
        "controller.quorum.fetch.max.bytes",
        INT,
        1048576,
        "The most metadata a broker fetches at once. A larger batch is fetched whole.",
        AtLeast(1),
        "low",
    ),
    _Config("controller.quorum.request.timeout.ms", INT, 2000, "How long a request to the quorum may take.", AtLeast(1)),
    _Config(
        "controller.quorum.retry.backoff.ms",
        INT,
        20,
        "How long the broker waits before it asks a failed node of the quorum again.",
        AtLeast(0),
        "low",
    ),
    _Config("controller.socket.timeout.ms", INT, 30000, "How long a request to the active controller may take.", AtLeast(1)),
)

REPLICATION = (
    _Config(
        "num.replica.fetchers",
        INT,
        1,
        "The number of connections over which a follower fetches from each leader.",
        AtLeast(1),
        "high",
        CLUSTER_WIDE,
    ),
    _Config(
        "replica.lag.time.max.ms",
        LONG,
        30000,
        "How long a follower may be behind its leader and still be in sync.",
        AtLeast(1),
        "high",
    ),
    _Config("replica.fetch.max.bytes", INT, 1048576, "The most a follower fetches from one partition at once.", AtLeast(0)),
    _Config("replica.fetch.response.max.bytes", INT, 10485760, "The most a follower fetches at once.", AtLeast(0)),
    _Config(
        "replica.fetch.min.bytes",
        INT,
        1,
        "The least data for which a leader answers before replica.fetch.wait.max.ms is over.",
        AtLeast(0),
        "high",
    ),
    _Config(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        "The longest time a leader lets a follower wait. Keep it below replica.lag.time.max.ms.",
        AtLeast(0),
        "high",
    ),
    _Config("replica.fetch.backoff.ms", INT, 1000, "How long a follower waits after a failure.", AtLeast(0)),
    _Config(
        "replica.selector.class",
        STRING,
        None,
        "The replica that consumers read from: the leader, or an in-sync replica in the consumer's rack. Kafka takes any class.",
        OneOf(LEADER_SELECTOR, RACK_AWARE_SELECTOR),
    ),
    _Config("replica.socket.timeout.ms", INT, 30000, "How long a follower waits for its leader's answer.", AtLeast(1), "high"),
    _Config(
        "request.timeout.ms",
        INT,
        30000,
        "How long a transaction coordinator waits for other brokers: for replicas of its state, and for answers.",
        AtLeast(1),
        "high",
    ),
    _Config(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        "The longest time a request waits for the producer's last transaction to complete.",
        AtLeast(0),
        "high",
    ),
    _Config(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        "How long a partition's leader waits before it asks a transaction coordinator on another broker again.",
        AtLeast(1),
        "high",
    ),
    _Config(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "How often high watermarks are written to replication-offset-checkpoint.",
        AtLeast(1),
        "high",
    ),
)


def _rate(name: str, doc: str) -> ConfigDefinition:
    return _Config(name, LONG, MAX_LONG, doc, AtLeast(0), update_mode=CLUSTER_WIDE, is_described_if_set=True)


def _samples(name: str, default: int, doc: str) -> ConfigDefinition:
    return _Config(name, INT, default, doc, AtLeast(1), "low")


THROTTLES = (
    _rate(
        "leader.replication.throttled.rate",
        "The most bytes per second that followers fetch from the throttled replicas this broker leads.",
    ),
    _rate("follower.replication.throttled.rate", "The most bytes per second that the throttled replicas on this broker fetch."),
    _samples("replication.quota.window.num", 11, "The number of samples these rates are measured over."),
    _samples("replication.quota.window.size.seconds", 1, "The length of one sample."),
    _rate(
        "replica.alter.log.dirs.io.max.bytes.per.second", "The most bytes per second that moves to other data directories copy."
    ),
    _samples(
        "alter.log.dirs.replication.quota.window.num", 11, "The number of samples the rate of these moves is measured over."
    ),
    _samples("alter.log.dirs.replication.quota.window.size.seconds", 1, "The length of one sample."),
)

# The controller's periodic tasks.
ELECTIONS = (
    _Config(
        "metadata.max.idle.interval.ms",
        INT,
        500,
        "How often an idle controller with a controller listener appends a no-op record, so that brokers see it is alive.",
        AtLeast(0),
        "low",
    ),
    _Config(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        "Lets the controller make a partition's preferred (first) replica the leader again once it is in sync.",
        None,
        "high",
    ),
    _Config(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        "How often the controller looks for partitions not led by their preferred replica.",
        AtLeast(1),
        "high",
    ),
    _Config(
        "unclean.leader.election.interval.ms",
        LONG,
        300000,
        "How often the controller looks for partitions without leader that may have an unclean election.",
        AtLeast(1),
        internal=True,
    ),
)

QUORUM_SECTIONS = (
    ("The cluster", QUORUM),
    ("A broker among others", MEMBER),
    ("Replication", REPLICATION),
    ("Throttles", THROTTLES),
    ("Elections", ELECTIONS),
)
