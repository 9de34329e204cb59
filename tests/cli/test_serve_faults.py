"""``odradek serve --faults FILE``: rules that a client meets, and files that end the start."""

import json
import signal

import kafka
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka.errors import NotEnoughReplicasError

from tests.broker_process import BrokerProcess
from tests.cli.test_serve import assert_refused, odradek_serve

WITHIN_S = 10


@pytest.mark.parametrize(
    ("content", "mention"),
    [
        ("{", "is not JSON"),
        ("{}", "{} is not allowed; allowed is a list of rules"),
        ('[{"api": "Produce", "error": "NO"}]', "rule 0: error: 'NO' is not allowed; allowed are names and numbers of Kafka's"),
        ('[{"drop": true}, {"topics": "t"}]', "rule 1: topics: unknown key; did you mean topic? allowed are api, "),
    ],
)
def test_a_bad_file_ends_the_start_and_names_key_value_and_what_is_allowed(tmp_path, content, mention):
    rules = tmp_path / "rules.json"
    rules.write_text(content)
    assert_refused(odradek_serve("--port", 0, "--data-dir", tmp_path / "data", "--faults", rules), rules, mention)
    assert not (tmp_path / "data").exists()


def test_a_file_that_is_not_there_ends_the_start(tmp_path):
    assert_refused(odradek_serve("--port", 0, "--data-dir", tmp_path / "data", "--faults", tmp_path / "none"), "No such file")


def test_a_client_meets_the_rules_of_the_file(tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text(
        json.dumps(
            [{"api": "Produce", "topic": "orders", "error": "NOT_ENOUGH_REPLICAS"}, {"client_id": "killer", "restart": "before"}]
        )
    )
    with BrokerProcess(tmp_path / "data", arguments=("--faults", str(rules))) as broker:
        with kafka.KafkaProducer(bootstrap_servers=broker.address, retries=0) as client:
            with pytest.raises(NotEnoughReplicasError):
                client.send("orders", b"1").get(WITHIN_S)
            assert client.send("other", b"1").get(WITHIN_S).offset == 0
        killer = AdminClient({"bootstrap.servers": broker.address, "client.id": "killer"})
        with pytest.raises(KafkaException):
            killer.list_topics(timeout=1)
        assert broker.wait_ended(WITHIN_S) == -signal.SIGKILL
