"""What a server.properties and a command line make of a broker."""

import pickle
import subprocess
import sys

import pytest

from odradek.common.config import InvalidConfig, load
from odradek.common.config.listener_config import per_ip_overrides
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.log.log_config import LogConfig
from tests.cases import each_case

HOUR_MS = 3_600_000


def test_without_a_word_everything_has_its_default():
    config = load()
    assert config["num.partitions"] == 1
    assert config["fetch.max.bytes"] == 55 * 1024 * 1024
    assert config["listeners"] == ("PLAINTEXT://127.0.0.1:9092",)
    assert config.warnings == ()


def test_the_command_line_wins_over_the_file():
    config = load("num.partitions=3\ndelete.topic.enable=false", {"num.partitions": "5"})
    assert config["num.partitions"] == 5
    assert config["delete.topic.enable"] is False


@pytest.mark.parametrize(
    ("name", "limit", "own", "counts"),
    [
        ("consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms=50000", "60000", 50_000),
        ("consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms=50000", "48000", 48_000),
        ("share.record.lock.duration.ms", "group.share.min.record.lock.duration.ms=20000", "15000", 20_000),
        ("streams.num.standby.replicas", "group.streams.max.standby.replicas=1", "2", 1),
        ("streams.acceptable.recovery.lag", "", "7", 7),
    ],
)
def test_a_groups_own_value_that_is_beyond_the_brokers_limits_counts_as_the_limit(name, limit, own, counts):
    config = load(limit)
    assert config.of_group({name: own}, name) == counts
    assert config.of_group({}, name) == config[f"group.{name}"]


@pytest.mark.parametrize("text", ["broker.id=7", "node.id=7", "node.id=7\nbroker.id=7"])
def test_node_id_and_broker_id_stand_for_one_another(text):
    config = load(text)
    assert config["node.id"] == config["broker.id"] == 7


def test_two_ids_that_differ_are_refused():
    with pytest.raises(InvalidConfig, match=r"broker\.id"):
        load("node.id=1\nbroker.id=2")


@each_case(
    ("key", "warning"),
    [
        ("log.retention.mss", "did you mean log.retention.ms?"),
        ("num.network.thread", "did you mean num.network.threads?"),
        ("controlled.shutdown.enable", "a broker alone"),
        ("sasl.kerberos.service.name", "no Kerberos"),
        ("listener.name.plaintextt.plain.sasl.jaas.config", "no listener with this name"),
        ("retention.ms", "log.retention.ms"),
        ("listener.name.plaintext.max.connections", "for one listener"),
        ("listener.name.ssl.ssl.keystore.password", "no listener with this name"),
        ("listener.name.PLAINTEXT.ssl.keystore.password", "in lower case"),
        ("ssl.provider", "OpenSSL"),
        ("zzz", "there is no such config"),
    ],
)
def test_a_key_that_does_nothing_is_ignored_with_a_warning_that_helps(key, warning):
    (told,) = load(None, {key: "secret"}).warnings
    assert told.startswith(f"{key} is ignored: ")
    assert warning in told
    assert "secret" not in told


@each_case(
    ("key", "value"),
    [
        ("num.partitions", "0"),
        ("num.partitions", "many"),
        ("node.id", "-1"),
        ("log.segment.bytes", "1048575"),
        ("log.cleanup.policy", "compact,"),
        ("log.cleanup.policy", "shred"),
        ("log.dirs", ""),
        ("log.roll.hours", "0"),
        ("log.roll.ms", "0"),
        ("log.roll.jitter.ms", "-1"),
        ("log.retention.ms", "0"),
        ("log.retention.minutes", "0"),
        ("log.cleaner.dedupe.buffer.size", "1048576"),
        ("log.cleaner.min.cleanable.ratio", "1.5"),
        ("log.cleaner.threads", "0"),
        ("compression.gzip.level", "0"),
        ("max.connections.per.ip", "0"),
        ("max.connections.per.ip.overrides", "localhost"),
        ("max.connections.per.ip.overrides", "localhost:-1"),
        ("queued.max.request.bytes", "5"),
        ("offsets.topic.compression.codec", "9"),
        ("offsets.topic.replication.factor", "40000"),
        ("group.consumer.heartbeat.interval.ms", "4999"),
        ("group.consumer.max.session.timeout.ms", "44999"),
        ("group.share.heartbeat.interval.ms", "4999"),
        ("group.share.max.share.sessions", "199"),
        ("group.streams.heartbeat.interval.ms", "4999"),
        ("group.streams.num.standby.replicas", "3"),
        ("listeners", ""),
        ("listeners", "PLAINTEXT//x"),
        ("listeners", "PLAINTEXT://h:70000"),
        ("listeners", "PLAINTEXT://h:-1"),
        ("listeners", "PLAINTEXT://h:1,plaintext://h:2"),
        ("listeners", "INTERNAL://h:1"),
        ("listener.name.plaintext.ssl.client.auth", "sometimes"),
        ("security.inter.broker.protocol", "SSL"),
        ("security.inter.broker.protocol", "TLS"),
        ("ssl.enabled.protocols", "TLSv1.4"),
        ("ssl.keystore.type", "BKS"),
        ("advertised.listeners", "OTHER://h:1"),
        ("advertised.listeners", "PLAINTEXT://0.0.0.0:1"),
        ("inter.broker.listener.name", "OTHER"),
        ("process.roles", ""),
        ("process.roles", "broker,zookeeper"),
        ("controller.quorum.voters", "2@h:9093"),
        ("controller.quorum.voters", "1@h:9093,2@h:9094"),
        ("controller.quorum.voters", "h:9093"),
        ("controller.quorum.voters", "1@h"),
        ("controller.quorum.bootstrap.servers", "h:9093"),
        ("controller.quorum.bootstrap.servers", "h"),
        ("listener.security.protocol.map", "PLAINTEXT"),
        ("listener.security.protocol.map", "PLAINTEXT:FOO"),
        ("listener.security.protocol.map", "OTHER:PLAINTEXT"),
    ],
)
def test_a_known_key_with_a_bad_value_stops_the_start_and_is_told(key, value):
    with pytest.raises(InvalidConfig) as refusal:
        load(None, {key: value})
    named = {"listener.security.protocol.map": ("listener.security.protocol.map", "listeners")}.get(key, (key,))
    assert refusal.value.key in named
    assert refusal.value.allowed in str(refusal.value)


@each_case(
    ("key", "value"),
    [
        ("log.cleanup.policy", ""),
        ("log.retention.hours", "-5"),
        ("max.connections.per.ip.overrides", "127.0.0.1:5,::1:3"),
        ("connections.max.idle.ms", "-1"),
        ("socket.send.buffer.bytes", "-1"),
        ("listeners", "plaintext://h:0"),
        ("listeners", "PLAINTEXT://[::1]:9092"),
        ("advertised.listeners", "PLAINTEXT://host.docker.internal:0"),
        ("auto.create.topics.enable", " False "),
        ("broker.rack", ""),
    ],
)
def test_a_value_that_kafka_takes_is_taken(key, value):
    load(None, {key: value})


def test_two_listeners_may_share_a_port_only_on_both_internet_protocols():
    protocols = "A:PLAINTEXT,B:PLAINTEXT"
    load(None, {"listeners": "A://127.0.0.1:9,B://[::1]:9", "listener.security.protocol.map": protocols})
    load(None, {"listeners": "A://:0,B://:0", "listener.security.protocol.map": protocols})
    with pytest.raises(InvalidConfig, match="different ports"):
        load(None, {"listeners": "A://h:9,B://i:9", "listener.security.protocol.map": protocols})


@each_case(
    "quorum",
    [
        "controller.quorum.bootstrap.servers=localhost:9093",
        "controller.quorum.voters=1@localhost:9093",
        "controller.quorum.voters=1@kafka:29093\nnode.id=1",
    ],
)
@each_case("roles", ["broker,controller", "controller, broker"])
def test_a_node_that_is_broker_and_controller_of_its_own_cluster_starts(quorum, roles):
    load(
        f"process.roles={roles}\ncontroller.listener.names=CONTROLLER\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
        f"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n{quorum}"
    )


BROKER = {"process.roles": "broker", "node.id": "2", "controller.listener.names": "C", "controller.quorum.voters": "1@h:9093"}


@pytest.mark.parametrize("quorum", ["controller.quorum.voters", "controller.quorum.bootstrap.servers"])
def test_a_broker_of_another_quorum_is_taken(quorum):
    settings = {key: value for key, value in BROKER.items() if key != "controller.quorum.voters"}
    load(None, settings | {quorum: "1@h:9093" if quorum.endswith("voters") else "h:9093"})


@each_case(
    ("key", "value", "named"),
    [
        ("controller.quorum.voters", "", "controller.quorum.voters"),
        ("controller.quorum.voters", "2@h:9093", "controller.quorum.voters"),
        ("controller.quorum.voters", "h:9093", "controller.quorum.voters"),
        ("controller.quorum.bootstrap.servers", "h", "controller.quorum.bootstrap.servers"),
        ("controller.listener.names", "", "controller.listener.names"),
        ("controller.listener.names", "PLAINTEXT", "listeners"),
    ],
)
def test_a_broker_without_a_quorum_elsewhere_does_not_start(key, value, named):
    with pytest.raises(InvalidConfig) as refusal:
        load(None, BROKER | {key: value})
    assert refusal.value.key == named


@pytest.mark.parametrize("servers", ["localhost:9094", "localhost:9092", "localhost:9093,other:9093"])
def test_a_quorum_elsewhere_is_not_joined_without_a_word(servers):
    with pytest.raises(InvalidConfig, match=r"controller\.quorum\.bootstrap\.servers.* own controller"):
        load(
            "controller.listener.names=CONTROLLER\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
            f"controller.quorum.bootstrap.servers={servers}"
        )


CONTROLLER = {"process.roles": "controller", "controller.listener.names": "C,D", "listeners": "C://h:9093"}


def test_a_controller_without_a_broker_listens_for_brokers():
    config = load(None, CONTROLLER | {"node.id": "3", "controller.quorum.voters": "3@h:9093"})
    assert config.controller_endpoints == [("C", "h", 9093)]
    assert config["listeners"] == ()


@each_case(
    ("key", "value", "named"),
    [
        ("controller.listener.names", "", "controller.listener.names"),
        ("listeners", "PLAINTEXT://h:9092", "listeners"),
        ("listeners", "C://h:9093,PLAINTEXT://h:9092", "listeners"),
        ("listeners", "C://h:9093,D://i:9093", "listeners"),
        ("controller.quorum.voters", "7@h:9093", "controller.quorum.voters"),
        ("controller.quorum.bootstrap.servers", "h:9094", "controller.quorum.bootstrap.servers"),
    ],
)
def test_a_controller_that_brokers_could_not_reach_or_trust_does_not_start(key, value, named):
    with pytest.raises(InvalidConfig) as refusal:
        load(None, CONTROLLER | {key: value})
    assert refusal.value.key == named


def test_a_brokers_clients_do_not_come_by_the_controllers_listeners():
    config = load(
        "process.roles=broker,controller\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\nadvertised.listeners=PLAINTEXT://h:9092,CONTROLLER://h:9093\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    )
    assert config["listeners"] == ("PLAINTEXT://:9092",)
    assert config.controller_endpoints == [("CONTROLLER", "", 9093)]


@each_case(
    ("text", "retention_ms"),
    [
        ("", 168 * HOUR_MS),
        ("log.retention.hours=2", 2 * HOUR_MS),
        ("log.retention.hours=2\nlog.retention.minutes=1", 60_000),
        ("log.retention.hours=2\nlog.retention.minutes=1\nlog.retention.ms=5", 5),
        ("log.retention.hours=-2", -1),
    ],
)
def test_retention_is_that_of_the_finest_unit_set(text, retention_ms):
    assert load(text).topic_config({})["retention.ms"] == retention_ms


@pytest.mark.parametrize(("text", "log_dirs"), [("log.dir=/a", ("/a",)), ("log.dir=/a\nlog.dirs=/b", ("/b",)), ("", None)])
def test_log_dir_counts_where_log_dirs_is_not_set(text, log_dirs):
    assert load(text)["log.dirs"] == log_dirs


def test_a_topic_takes_its_own_configs_and_the_brokers_for_the_rest():
    config = load("log.segment.bytes=2000000\nlog.roll.hours=3\nlog.flush.scheduler.interval.ms=9")
    topic = config.topic_config({"segment.bytes": "3000000", "cleanup.policy": "compact,delete"})
    assert topic["segment.bytes"] == 3_000_000
    assert topic["cleanup.policy"] == ("compact", "delete")
    assert topic["segment.ms"] == 3 * HOUR_MS
    assert topic["flush.ms"] == 9


def test_a_log_acts_on_the_configs_of_its_topic():
    config = load("producer.id.expiration.ms=4")
    made = config.log_config({"max.message.bytes": "7", "flush.messages": "1", "internal.segment.bytes": "1000"})
    assert made == LogConfig(max_message_bytes=7, flush_messages=1, segment_bytes=1000, producer_id_expiration_ms=4)


def test_the_defaults_of_the_table_and_of_the_log_are_the_same():
    assert load().log_config({}) == LogConfig()


@each_case(
    "overrides",
    [
        {"retention.mss": "1"},
        {"retention.ms": "x"},
        {"retention.ms": "-2"},
        {"segment.bytes": "100"},
        {"cleanup.policy": "compact,foo"},
        {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "10"},
        {"remote.storage.enable": "true"},
        {"leader.replication.throttled.replicas": "0:1,x"},
    ],
)
def test_a_topic_config_that_may_not_be_is_invalid_config(overrides):
    with pytest.raises(KafkaError) as refusal:
        load().validate_topic_configs(overrides)
    assert refusal.value.code is ErrorCode.INVALID_CONFIG


def test_topic_configs_without_meaning_here_may_be_set_as_in_kafka():
    load().validate_topic_configs({"remote.storage.enable": "false", "local.retention.ms": "-2", "retention.bytes": "-7"})


def test_a_dynamic_override_wins_over_what_is_set_in_another_unit():
    config = load("log.retention.ms=1000")
    config.override({"log.retention.hours": "2"}, {})
    assert config.topic_config({})["retention.ms"] == 2 * HOUR_MS
    config.override()
    assert config.topic_config({})["retention.ms"] == 1000


def test_an_override_that_may_not_be_leaves_everything_as_it_was():
    config = load()
    with pytest.raises(InvalidConfig):
        config.override({"max.connections.per.ip": "0"}, {})
    assert config["max.connections.per.ip"] == 2**31 - 1


def test_a_refusal_survives_the_way_between_processes():
    refusal = pickle.loads(pickle.dumps(InvalidConfig("a", "b", "c")))
    assert str(refusal) == "Invalid value b for configuration a: must be c"


def test_reading_a_configuration_imports_nothing_that_only_a_mistake_needs():
    code = (
        "import sys; from odradek.common.config import load; load('num.partitions=3');"
        "print([m for m in ('difflib', 'decimal', 'asyncio', 'click', 'kio')"
        " if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_a_broker_of_a_cluster_has_the_listener_by_which_brokers_come():
    cluster = "process.roles=broker\nnode.id=2\ncontroller.listener.names=C\ncontroller.quorum.voters=1@h:9093\n"
    with pytest.raises(InvalidConfig) as refusal:
        load(cluster + "listeners=SSL://:9092")
    assert refusal.value.key == "security.inter.broker.protocol"
    assert load(cluster + "listeners=SSL://:9092\nsecurity.inter.broker.protocol=SSL")["listeners"]


def test_the_listener_between_brokers_is_named_once():
    with pytest.raises(InvalidConfig, match=r"security\.inter\.broker\.protocol"):
        load("listeners=SSL://:9092\nsecurity.inter.broker.protocol=SSL\ninter.broker.listener.name=SSL")


def test_limits_by_address_are_parsed_once_for_all_connections():
    limits = "127.0.0.1:5,::1:3"
    assert per_ip_overrides(limits) is per_ip_overrides(limits)
    assert per_ip_overrides(limits) == {"127.0.0.1": 5, "::1": 3}
