"""A server.properties for Apache Kafka says what odradek did without, and loses nothing that was set."""

import pytest

from odradek.common.config.broker_config import InvalidConfig, load
from odradek.common.config.kafka_properties import kafka_properties
from odradek.properties import parse_properties, property_line

HERE = {"log.dirs": "/data", "listeners": "PLAINTEXT://127.0.0.1:9092"}


def settings(controller_port=None, **texts):
    return kafka_properties(load(None, HERE | {name.replace("_", "."): text for name, text in texts.items()}), controller_port)


def test_a_broker_without_any_setting_is_named_in_full():
    assert settings().settings == {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
        "log.dirs": "/data",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def test_what_was_set_is_carried_over_whether_odradek_acts_on_it_or_not():
    found = settings(log_retention_ms="77", num_io_threads="5", log_cleaner_threads="2")
    assert [found.settings[name] for name in ("log.retention.ms", "num.io.threads", "log.cleaner.threads")] == ["77", "5", "2"]
    assert found.awakened == ("num.io.threads",)


def test_what_kafka_does_not_have_is_named_and_stays_in_the_file_as_a_comment():
    found = settings(socket_busy_poll_us="0", log_retentoin_ms="77")
    assert found.unknown == {"socket.busy.poll.us": "0", "log.retentoin.ms": "77"}
    assert "#log.retentoin.ms=77" in found.text().splitlines()
    assert not parse_properties(found.text()).keys() & found.unknown.keys()


def test_the_configs_of_kafkas_own_authorizer_are_known():
    found = settings(super_users="User:a", allow_everyone_if_no_acl_found="true")
    assert (found.unknown, found.settings["super.users"]) == ({}, "User:a")


@pytest.mark.parametrize(
    ("given", "voters"),
    [
        ({}, "1@127.0.0.1:9094"),
        ({"controller_quorum_voters": "1@here:9999"}, "1@here:9999"),
        ({"controller_listener_names": "C", "listeners": "PLAINTEXT://127.0.0.1:9092,C://:9095"}, "1@localhost:9095"),
    ],
)
def test_the_voter_is_this_node_at_its_listener_for_controllers(given, voters):
    found = settings(**({"listeners": "PLAINTEXT://127.0.0.1:9093"} | given)).settings
    assert found["controller.quorum.voters"] == voters
    assert f":{voters.rpartition(':')[2]}" in found["listeners"]


@pytest.mark.parametrize("given", [{}, {"controller_quorum_bootstrap_servers": "127.0.0.1:9093"}])
def test_voters_that_the_log_tells_of_are_asked_for(given):
    listeners = "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    texts = HERE | {"listeners": listeners, "controller.listener.names": "CONTROLLER"}
    texts |= {name.replace("_", "."): text for name, text in given.items()}
    found = kafka_properties(load(None, texts), log_has_voters=True).settings
    assert found["controller.quorum.bootstrap.servers"] == "127.0.0.1:9093"
    assert "controller.quorum.voters" not in found


def test_a_log_that_tells_of_no_voters_needs_one_in_the_file_whatever_servers_it_names():
    listeners = "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    servers = {"controller_quorum_bootstrap_servers": "127.0.0.1:9093", "controller_listener_names": "CONTROLLER"}
    found = settings(listeners=listeners, **servers).settings
    assert found["controller.quorum.voters"] == "1@127.0.0.1:9093"
    assert "controller.quorum.bootstrap.servers" not in found


def test_a_broker_of_a_cluster_has_no_listener_for_controllers():
    servers = {"controller_quorum_voters": "1@127.0.0.1:9093", "controller_listener_names": "CONTROLLER"}
    found = settings(process_roles="broker", node_id="2", **servers).settings
    assert (found["listeners"], found["controller.quorum.voters"]) == ("PLAINTEXT://127.0.0.1:9092", "1@127.0.0.1:9093")


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]"])
def test_a_listener_on_every_interface_is_advertised_as_it_was(host):
    found = settings(listeners=f"INSIDE://{host}:9092", listener_security_protocol_map="INSIDE:PLAINTEXT").settings
    assert found["advertised.listeners"] == "INSIDE://localhost:9092"
    assert found["inter.broker.listener.name"] == "INSIDE"
    assert found["listener.security.protocol.map"] == "INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT"


@pytest.mark.parametrize("name", ["listeners", "advertised_listeners"])
def test_a_port_that_changes_cannot_be_advertised_by_kafka(name):
    with pytest.raises(InvalidConfig, match="on a fixed port"):
        settings(**{name: "PLAINTEXT://127.0.0.1:0"})


def test_the_older_name_of_the_node_id_is_not_said_as_well():
    found = settings(broker_id="7").settings
    assert (found["node.id"], "broker.id" in found) == ("7", False)


@pytest.mark.parametrize("text", ["plain", " a blank in front", "\\back\\", "täglich 💡", "two\nlines\t", "#=:!"])
def test_a_line_says_what_it_was_given_in_ascii(text):
    assert property_line(text, text).isascii()
    assert parse_properties(property_line(text, text)) == {text: text}


def test_odradek_starts_with_the_file_as_it_did_before():
    before = load(
        None,
        HERE | {"log.retention.ms": "77", "listeners": "A://127.0.0.1:9092", "listener.security.protocol.map": "A:PLAINTEXT"},
    )
    after = load(kafka_properties(before).text())
    differing = {name for name in before.static if before[name] != after[name]}
    # Which listeners there may be.
    assert differing == {"listener.security.protocol.map"}


def test_the_listener_between_brokers_is_said_by_its_name():
    found = settings(listeners="SSL://127.0.0.1:9092", security_inter_broker_protocol="SSL").settings
    assert found["inter.broker.listener.name"] == "SSL"
    # Kafka refuses both.
    assert "security.inter.broker.protocol" not in found


def test_what_is_set_for_a_listener_is_carried_over():
    key = "listener.name.plaintext.ssl.client.auth"
    config = load(None, HERE | {key: "required", "ssl.keystore.location": "/store.pem"})
    found = kafka_properties(config).settings
    assert (found[key], found["ssl.keystore.location"]) == ("required", "/store.pem")
