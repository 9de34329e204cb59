import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.api import transaction_requests
from tests.broker.api.bed import ask, make_broker


def init(broker, **fields):
    fields = {"transactional_id": None, "transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1, **fields}
    answer = ask(broker, ApiKey.INIT_PRODUCER_ID, **fields)
    return answer.error_code, answer.producer_id, answer.producer_epoch


def test_every_producer_gets_an_id_of_its_own(core):
    assert [init(core) for _ in range(3)] == [(ErrorCode.NONE, producer_id, 0) for producer_id in range(3)]


def test_a_producer_that_has_an_id_gets_a_new_one():
    assert init(make_broker(), producer_id=5, producer_epoch=3) == (ErrorCode.NONE, 0, 0)


@pytest.mark.parametrize("fields", [{"producer_id": 5}, {"producer_epoch": 5}, {"transactional_id": ""}])
def test_a_request_that_says_nothing_is_invalid(fields):
    assert init(make_broker(), **fields) == (ErrorCode.INVALID_REQUEST, -1, -1)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_transaction_timeout_out_of_bounds_is_refused(timeout_ms):
    answer = init(make_broker(), transactional_id="t", transaction_timeout_ms=timeout_ms)
    assert answer == (ErrorCode.INVALID_TRANSACTION_TIMEOUT, -1, -1)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"enable2_pc": True}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"enable2_pc": True, "keep_prepared_txn": True}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"enable2_pc": True, "transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"keep_prepared_txn": True}, ErrorCode.UNSUPPORTED_VERSION),
        ({"keep_prepared_txn": True, "transaction_timeout_ms": 0}, ErrorCode.UNSUPPORTED_VERSION),
    ],
    ids=str,
)
def test_without_the_config_nobody_has_transactions_that_an_outside_manager_ends(asked, code):
    assert init(make_broker(), **{"transactional_id": "t", **asked}) == (code, -1, -1)


@pytest.mark.parametrize("is_enabled", ["true", "false"])
def test_an_open_transaction_cannot_be_taken_over(is_enabled):
    broker = make_broker(transaction_two_phase_commit_enable=is_enabled)
    asked = {"transactional_id": "t", "keep_prepared_txn": True, "enable2_pc": is_enabled == "true"}
    assert init(broker, **asked) == (ErrorCode.UNSUPPORTED_VERSION, -1, -1)


def test_what_is_asked_of_transactions_means_nothing_without_a_transactional_id():
    assert init(make_broker(), enable2_pc=True, keep_prepared_txn=True) == (ErrorCode.NONE, 0, 0)


def test_without_a_block_on_disk_there_is_no_id(core, monkeypatch):
    def fail():
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    monkeypatch.setattr(core.controller, "next_producer_id", fail)
    assert init(core) == (ErrorCode.KAFKA_STORAGE_ERROR, -1, -1)


@pytest.mark.parametrize("version", range(7))
def test_a_transactional_id_has_a_producer_in_every_version(client, new_id, version):
    name = new_id()
    producer_id, epoch = transaction_requests.init(client, name, version)
    assert (producer_id >= 0, epoch) == (True, 0)
    assert transaction_requests.init(client, name, version) == (producer_id, 1)


@pytest.mark.parametrize(
    ("version", "code"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED), (5, ErrorCode.PRODUCER_FENCED)]
)
def test_a_producer_that_is_fenced_is_told_so_in_the_words_of_its_version(client, new_id, version, code):
    name = new_id()
    transaction_requests.init(client, name)
    assert transaction_requests.init(client, name, version, producer_id=10_000, producer_epoch=0) == code
