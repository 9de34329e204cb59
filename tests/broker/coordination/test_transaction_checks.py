"""Produce and the transaction coordinator (KIP-890): what is asked, what becomes of the answers, and what comes too late."""

import pytest

from odradek.broker.api import produce
from odradek.common.context import CLOSE_CONNECTION, Reply, RequestContext, Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.record_batch import ensure_intact, iter_batches
from tests.broker.api.bed import create, make_broker
from tests.storage.support import batch
from tests.storage.transactional import transactional_batch

pytestmark = pytest.mark.interpreted

VERIFIES, ADDS = 11, 12


class Transactions:
    """A coordinator that says what it is told to, at once or when ``answer`` is called."""

    def __init__(self):
        self.verdict = ErrorCode.NONE
        self.asked = []
        self.pending = []
        self.waits = False
        self.settled = []
        self.others = None

    def settle(self, transactional_id):
        self.settled.append((transactional_id, len(self.asked)))

    def verify_partitions(self, transactional_id, producer_id, producer_epoch, partitions):
        self.asked.append(("verify", transactional_id, producer_id, producer_epoch, sorted(partitions)))
        return dict.fromkeys(partitions, self.verdict)

    def add_partitions(self, transactional_id, producer_id, producer_epoch, partitions, client_version):
        self.asked.append(("add", transactional_id, producer_id, producer_epoch, sorted(partitions)))
        assert client_version == 2
        reply = Reply()
        if self.waits:
            self.pending.append(reply)
        else:
            reply.complete(self.verdict)
        return reply

    def answer(self):
        for reply in self.pending:
            reply.complete(self.verdict)


@pytest.fixture
def broker():
    broker = make_broker()
    broker.transactions = Transactions()
    create(broker, "t", 2)
    return broker


def send(broker, *batches, version=ADDS, transactional_id="tx", acks=-1):
    """Produce (partition, records) pairs; the answer, or a Reply."""
    request = ProduceRequest(transactional_id, acks, 1000, [("t", list(batches))])
    context = RequestContext(ApiKey.PRODUCE, version, 1, "client", Session("PLAINTEXT", ("127.0.0.1", 1)))
    return produce.handle(broker, context, request)


def codes(response):
    (topic,) = response.responses
    return [partition.error_code for partition in topic.partition_responses]


def end_of(broker, partition=0):
    return broker.partitions.get("t", partition).log.log_end_offset


def end(broker, commit=True, epoch=0):
    broker.partitions.get("t", 0).log.coordinator_appends.append_marker(7, epoch, 0, commit, leader_epoch=0, now_ms=0)


@pytest.mark.parametrize(("version", "way"), [(VERIFIES, "verify"), (ADDS, "add")])
def test_the_coordinator_is_asked_once_for_all_partitions(broker, version, way):
    response = send(broker, (0, transactional_batch()), (1, transactional_batch()), version=version)
    assert codes(response) == [ErrorCode.NONE] * 2
    assert broker.transactions.asked == [(way, "tx", 7, 0, [("t", 0), ("t", 1)])]


@pytest.mark.parametrize("version", [VERIFIES, ADDS])
def test_nobody_is_asked_while_the_transaction_is_open(broker, version):
    send(broker, (0, transactional_batch()), version=version)
    assert codes(send(broker, (0, transactional_batch(1)), version=version)) == [ErrorCode.NONE]
    assert len(broker.transactions.asked) == 1


def test_nobody_is_asked_about_other_batches(broker):
    assert codes(send(broker, (0, batch()))) == [ErrorCode.NONE]
    assert broker.transactions.asked == []


def test_a_transactional_batch_without_a_transactional_id_is_refused(broker):
    assert codes(send(broker, (0, transactional_batch()), transactional_id=None)) == [ErrorCode.INVALID_TXN_STATE]
    assert (broker.transactions.asked, end_of(broker)) == ([], 0)


@pytest.mark.parametrize(
    ("verdict", "version", "told"),
    [
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, 11, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 11, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_a_batch_that_the_coordinator_refuses_is_not_appended(broker, verdict, version, told):
    broker.transactions.verdict = verdict
    assert codes(send(broker, (0, transactional_batch()), version=version)) == [told]
    assert end_of(broker) == 0


def test_what_needs_no_answer_is_appended_whatever_the_answer(broker):
    send(broker, (0, transactional_batch()))
    broker.transactions.verdict = ErrorCode.COORDINATOR_NOT_AVAILABLE
    response = send(broker, (0, transactional_batch(1)), (1, transactional_batch()))
    assert codes(response) == [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS]


def test_an_old_epoch_is_fenced_without_asking(broker):
    send(broker, (0, transactional_batch(epoch=3)))
    assert codes(send(broker, (0, transactional_batch(epoch=2)))) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert len(broker.transactions.asked) == 1


def test_the_append_waits_for_the_answer(broker):
    broker.transactions.waits = True
    frame = bytearray(transactional_batch())
    reply = send(broker, (0, memoryview(frame)))
    frame[:] = bytes(len(frame))
    assert (type(reply), end_of(broker)) == (Reply, 0)
    broker.transactions.answer()
    answers = []
    reply.when_done(answers.append)
    assert (codes(answers[0]), end_of(broker)) == ([ErrorCode.NONE], 1)


def test_without_acks_a_later_refusal_closes_the_connection(broker):
    broker.transactions.waits = True
    broker.transactions.verdict = ErrorCode.TRANSACTION_ABORTABLE
    reply = send(broker, (0, transactional_batch()), acks=0)
    broker.transactions.answer()
    answers = []
    reply.when_done(answers.append)
    assert answers == [CLOSE_CONNECTION]


def test_a_fault_of_the_broker_after_the_answer_is_told(broker, monkeypatch, capsys):
    broker.transactions.waits = True
    reply = send(broker, (0, transactional_batch()))
    monkeypatch.setattr(type(broker.partitions.get("t", 0)), "append", lambda *_: 1 // 0)
    broker.transactions.answer()
    answers = []
    reply.when_done(answers.append)
    assert codes(answers[0]) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize(("role", "told"), [("log", ErrorCode.KAFKA_STORAGE_ERROR), ("leader", ErrorCode.NOT_LEADER_OR_FOLLOWER)])
def test_a_partition_that_comes_while_the_coordinator_is_asked_about_others_refuses_as_it_did(broker, role, told):
    broker.transactions.waits = True
    partition = broker.partitions.get("t", 1)
    had = getattr(partition, role)
    setattr(partition, role, None)
    reply = send(broker, (0, transactional_batch()), (1, transactional_batch()))
    setattr(partition, role, had)
    broker.transactions.answer()
    answers = []
    reply.when_done(answers.append)
    assert (codes(answers[0]), end_of(broker, 1)) == ([ErrorCode.NONE, told], 0)


def test_an_answer_from_before_the_marker_begins_nothing_behind_it(broker):
    broker.transactions.waits = True
    reply = send(broker, (0, transactional_batch()))
    end(broker, commit=False)
    broker.transactions.answer()
    answers = []
    reply.when_done(answers.append)
    assert codes(answers[0]) == [ErrorCode.INVALID_TXN_STATE]
    assert broker.partitions.get("t", 0).log.first_unstable_offset is None


def test_an_answer_for_a_partition_that_was_deleted_meanwhile_is_worth_nothing(broker):
    broker.transactions.waits = True
    reply = send(broker, (0, transactional_batch()))
    broker.controller.delete_topics([broker.controller.image.topics["t"].topic_id])
    create(broker, "t")
    broker.transactions.answer()
    answers = []
    reply.when_done(answers.append)
    assert codes(answers[0]) == [ErrorCode.INVALID_TXN_STATE]
    assert end_of(broker) == 0


def test_a_new_producer_of_the_newest_clients_begins_with_sequence_0(broker):
    response = send(broker, (0, transactional_batch(5)))
    assert codes(response) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert codes(send(broker, (1, transactional_batch(5)), version=VERIFIES)) == [ErrorCode.NONE]


@pytest.mark.parametrize(("version", "is_asked"), [(VERIFIES, False), (ADDS, True)])
def test_where_verification_is_off_the_coordinator_is_asked_only_to_add_a_partition(version, is_asked):
    broker = make_broker(transaction_partition_verification_enable="false")
    broker.transactions = Transactions()
    create(broker, "t")
    assert codes(send(broker, (0, transactional_batch()), version=version)) == [ErrorCode.NONE]
    assert bool(broker.transactions.asked) is is_asked


def test_a_partition_that_is_in_a_request_twice_gets_both_its_batches(broker):
    response = send(broker, (0, transactional_batch(0, count=2)), (0, transactional_batch(2)))
    assert codes(response) == [ErrorCode.NONE] * 2
    log = broker.partitions.get("t", 0).log
    stored = log.read(0, 1000, upper_offset=3, min_one_batch=True).read()
    found = []
    for position, header in iter_batches(stored):
        ensure_intact(header, stored, position)
        found.append((header.base_offset, header.base_sequence, header.record_count))
    assert found == [(0, 0, 2), (2, 2, 1)]


class Elsewhere:
    """The id is coordinated by another broker, which answers when ``reply`` is completed."""

    def __init__(self):
        self.asked = []
        self.reply = Reply()

    def coordinates(self, transactional_id):
        return transactional_id != "tx"

    def verify(self, transactional_id, producer_id, producer_epoch, partitions, *, adds):
        self.asked.append((transactional_id, producer_id, producer_epoch, sorted(partitions), adds))
        return self.reply


@pytest.mark.parametrize("version", [VERIFIES, ADDS])
def test_a_coordinator_elsewhere_is_asked_and_each_partition_has_its_answer(broker, version):
    others = broker.transactions.others = Elsewhere()
    response = send(broker, (0, transactional_batch()), (1, transactional_batch()), version=version)
    assert (response.done, others.asked) == (False, [("tx", 7, 0, [("t", 0), ("t", 1)], version == ADDS)])
    others.reply.complete({("t", 0): ErrorCode.NONE, ("t", 1): ErrorCode.NETWORK_EXCEPTION})
    assert codes(response.response) == [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS]
    assert (end_of(broker), end_of(broker, 1), broker.transactions.asked) == (1, 0, [])
