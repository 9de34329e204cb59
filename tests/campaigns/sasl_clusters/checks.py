"""What has to be so in a cluster whose nodes log in at each other."""

import time
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import NewTopic

from tests.campaigns.kafka_tools.kafka_brokers import KafkaBrokers
from tests.campaigns.kafka_tools.odradek_controller import OdradekController
from tests.campaigns.mixed_clusters.cluster import DEADLINE_S
from tests.campaigns.sasl_clusters.cluster import (
    BOTH,
    KAFKA,
    KAFKA_STRANGER,
    OURS,
    SECRETS,
    SESSION_MS,
    STRANGER,
    STRANGER_TO_BROKERS,
    WRONG,
    Checks,
    SaslCluster,
    of_values,
)

_TRANSACTIONS: Final = 20


def replicates(cluster: SaslCluster) -> None:
    """What both brokers acknowledge is on both of them, byte for byte, whichever leads."""
    cluster.create("even", [[KAFKA, OURS], [OURS, KAFKA]], min_insync_replicas="2")
    values = of_values("even", 400)
    cluster.produce("even", values, 2)
    assert cluster.consume("even", 2, len(values)) == values
    for index in range(2):
        cluster.until(lambda index=index: cluster.replica(KAFKA, "even", index) == cluster.replica(OURS, "even", index))  # type: ignore[misc]
        assert cluster.replica(OURS, "even", index)


def ends_transactions(cluster: SaslCluster) -> None:
    """Coordinators of both kinds write their markers to leaders of both kinds."""
    cluster.create("sums", [[KAFKA, OURS], [OURS, KAFKA]], min_insync_replicas="2")
    for number in range(_TRANSACTIONS):
        producer = Producer({**cluster.client("brokers"), "transactional.id": f"sum-{number}"})
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
        for partition in range(2):
            producer.produce("sums", f"sums-{number:05}".encode(), partition=partition)
        producer.flush(DEADLINE_S)
        if number % 4:
            producer.commit_transaction(DEADLINE_S)
        else:
            producer.abort_transaction(DEADLINE_S)
    expected = sorted(2 * [value for number, value in enumerate(of_values("sums", _TRANSACTIONS)) if number % 4])
    assert cluster.consume("sums", 2, len(expected), **{"isolation.level": "read_committed"}) == expected


def renews_sessions(cluster: SaslCluster) -> None:
    """Connections between nodes go on when their sessions are over, three times."""
    cluster.create("renewed", [[KAFKA, OURS], [OURS, KAFKA]], min_insync_replicas="2")
    said = len(cluster.logs())
    ends_s = time.monotonic() + 3 * SESSION_MS / 1000
    count = 0
    while time.monotonic() < ends_s:
        cluster.produce("renewed", of_values(f"renewed-{count}", 2), 2)
        count += 1
        assert [isr for _, isr in cluster.partitions("renewed")] == [BOTH, BOTH]
    told = [
        line for line in cluster.logs()[said:].splitlines() if "is over" in line or "does not answer" in line or "lost" in line
    ]
    assert told == []


def keeps_who_asks(cluster: SaslCluster) -> None:
    """Of a request that a broker forwards the controller knows whose it is: alice may not what brokers may."""
    for node_id in BOTH:
        admin = type(cluster.admin)(cluster.client("alice", node_id))
        try:
            admin.create_topics([NewTopic(f"alices-{node_id}", 1)])[f"alices-{node_id}"].result(DEADLINE_S)
        except KafkaException as refused:
            assert refused.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED, refused  # noqa: PT017
        else:
            raise AssertionError(f"alice may create topics by broker {node_id}")


def refuses_strangers(cluster: SaslCluster) -> None:
    """A broker of odradek's with a wrong password tries on, says why it is not let in, and ends when its time is over."""
    cluster.odradek.spawn(STRANGER)
    assert cluster.odradek.wait_ended(STRANGER) != 0
    log = cluster.odradek.log(STRANGER)
    refused = f"User:brokers cannot log in with {cluster.security.mechanism}: Authentication failed"
    assert refused in log, log
    if isinstance(cluster.controllers, OdradekController):
        assert _refusals(cluster.controllers) > 1


def refuses_kafkas_strangers(cluster: SaslCluster) -> None:
    """The controller says of a broker of Kafka's with a wrong password who it is, and why it is not let in."""
    before = _refusals(cluster.controllers)
    cluster.kafka.spawn(KAFKA_STRANGER)
    try:
        cluster.until(lambda: _refusals(cluster.controllers) > before + 1)
        cluster.until(lambda: "failed authentication due to" in _said_by_kafka(cluster.kafka, KAFKA_STRANGER))
    finally:
        cluster.kafka.kill9(KAFKA_STRANGER)


def tells_of_leaders_that_do_not_let_it_in(cluster: SaslCluster) -> None:
    """A broker that only the others do not let in follows nobody, and says why."""
    cluster.odradek.start(STRANGER_TO_BROKERS)
    cluster.create("strange", [[KAFKA, STRANGER_TO_BROKERS], [OURS, STRANGER_TO_BROKERS]])
    refused = f"User:brokers cannot log in with {cluster.security.mechanism}: Authentication failed"
    cluster.until(lambda: cluster.odradek.log(STRANGER_TO_BROKERS).count(refused) > 1)
    cluster.until(lambda: [isr for _, isr in cluster.partitions("strange")] == [[KAFKA], [OURS]])
    cluster.odradek.kill9(STRANGER_TO_BROKERS)


def tells_no_secret(cluster: SaslCluster) -> None:
    """In no log of odradek's."""
    log = cluster.logs()
    assert log
    assert not [secret for secret in (*SECRETS.values(), WRONG) if secret in log]


def _refusals(controller: object) -> int:
    assert isinstance(controller, OdradekController)
    lines = [line for line in controller.log().splitlines() if '"event": "authentication failed"' in line]
    assert all('"user": "brokers"' in line and '"cause": "the password is wrong"' in line for line in lines), lines
    return len(lines)


def _said_by_kafka(brokers: KafkaBrokers, node_id: int) -> str:
    return (brokers.data(node_id).parent / "stderr.log").read_text(encoding="utf-8", errors="replace")


# Of these there is nothing to be seen under a controller of Kafka's.
OF_OUR_CONTROLLER: Final = frozenset({refuses_kafkas_strangers.__name__})
# Of these there is nothing to be seen where nobody has a password.
OF_PASSWORDS: Final = frozenset(
    {refuses_strangers.__name__, refuses_kafkas_strangers.__name__, tells_of_leaders_that_do_not_let_it_in.__name__}
)
CHECKS: Final[Checks] = {
    check.__name__: check
    for check in (
        replicates,
        ends_transactions,
        renews_sessions,
        keeps_who_asks,
        refuses_strangers,
        refuses_kafkas_strangers,
        tells_of_leaders_that_do_not_let_it_in,
        # Last, of all that has been said.
        tells_no_secret,
    )
}
