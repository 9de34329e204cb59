"""``odradek transactions`` against a broker that does not check whether a partition was added, so that transactions can hang."""

from itertools import count

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.records import Record, build_batch
from tests.broker_process import BrokerProcess
from tests.raw_client import fetch_fields, produce_fields

OPEN, COMMITTED = "Ongoing", "CompleteCommit"
READ_COMMITTED = 1
LONG_AGO_MS = 1_700_000_000_000
_numbers = count(1_000_000)


@pytest.fixture(scope="module")
def module_broker(tmp_path_factory):
    settings = {
        "transaction.partition.verification.enable": "false",
        "transaction.state.log.num.partitions": 3,
        "transaction.two.phase.commit.enable": "true",
    }
    with BrokerProcess(tmp_path_factory.mktemp("transactions") / "broker", settings=settings) as broker:
        yield broker


@pytest.fixture
def new_id():
    return lambda: f"id-{next(_numbers)}"


@pytest.fixture
def listed(ask_json):
    """{transactional id: state} of those that are listed with these options."""
    return lambda *options: {row["transactional_id"]: row["state"] for row in ask_json("transactions", "list", *options)}


class Producer:
    """A raw transactional producer on one socket."""

    def __init__(self, client, transactional_id, *, two_phase=False):
        self.client, self.transactional_id = client, transactional_id
        found = None
        while found is None or found.error_code:
            found = client.call(ApiKey.FIND_COORDINATOR, 3, key=transactional_id, key_type=1)
        answer = None
        while answer is None or answer.error_code:
            fields = {"transactional_id": transactional_id, "transaction_timeout_ms": 600_000, "enable2_pc": two_phase}
            answer = client.call(ApiKey.INIT_PRODUCER_ID, 6, **fields)
        self.id, self.epoch = answer.producer_id, answer.producer_epoch

    def add(self, topic, *partitions):
        self.client.call(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[{"name": topic, "partitions": partitions}],
        )
        return self

    def write(self, topic, partition=0):
        write(self.client, topic, self.id, self.epoch, partition)
        return self

    def commit(self):
        answer = self.client.call(
            ApiKey.END_TXN,
            3,
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=True,
        )
        assert answer.error_code == 0
        return self


def write(client, topic, producer_id, epoch=0, partition=0):
    """One record of long ago in a transaction."""
    batch = build_batch(
        [Record(value=b"x", timestamp=LONG_AGO_MS)],
        transactional=True,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
    )
    fields = produce_fields(topic, batch, partition=partition)
    answer = client.call(ApiKey.PRODUCE, 9, transactional_id="anybody", **fields).responses[0].partition_responses[0]
    assert answer.error_code == 0
    return producer_id


def read_committed(client, topic, partition=0):
    """The last stable offset."""
    answer = client.call(ApiKey.FETCH, 12, **fetch_fields(topic, 0, partition=partition, isolation_level=READ_COMMITTED))
    return answer.responses[0].partitions[0].last_stable_offset


def test_every_transactional_id_is_listed_with_its_coordinator_and_state(ask_json, client, topic, new_id):
    opened, ended = Producer(client, new_id()).add(topic, 0), Producer(client, new_id()).add(topic, 1).commit()
    rows = {row["transactional_id"]: row for row in ask_json("transactions", "list")}
    assert rows[opened.transactional_id] == {
        "transactional_id": opened.transactional_id,
        "coordinator": 1,
        "producer_id": opened.id,
        "state": OPEN,
    }
    assert rows[ended.transactional_id]["state"] == COMMITTED


def test_the_list_is_filtered_by_state_in_any_case(listed, client, topic, new_id):
    opened, ended = Producer(client, new_id()).add(topic, 0), Producer(client, new_id()).add(topic, 1).commit()
    found = listed("--state", "completecommit")
    assert ended.transactional_id in found
    assert opened.transactional_id not in found


def test_the_list_is_filtered_by_producer_id(listed, client, new_id):
    one, _, other = (Producer(client, new_id()) for _ in range(3))
    found = listed("--producer-id", one.id, "--producer-id", other.id)
    assert found.keys() == {one.transactional_id, other.transactional_id}


def test_the_list_is_filtered_by_duration(listed, client, topic, new_id):
    opened = Producer(client, new_id()).add(topic, 0)
    assert opened.transactional_id not in listed("--duration-filter", 600_000)


def test_the_list_is_filtered_by_a_pattern_that_has_to_match_as_a_whole(listed, client, new_id):
    name = new_id()
    Producer(client, name)
    assert listed("--transactional-id-pattern", f"{name[:2]}.*{name[-1]}").keys() >= {name}
    assert listed("--transactional-id-pattern", name[:-1]) == {}


def test_a_pattern_that_is_none_is_told(ask):
    status, out, err = ask("transactions", "list", "--transactional-id-pattern", "(")
    assert (status, out) == (1, "")
    assert "INVALID_REGULAR_EXPRESSION" in err


def test_a_state_that_is_none_is_a_mistake_of_the_command_line(ask):
    status, _, err = ask("transactions", "list", "--state", "Sleeping")
    assert status == 2
    assert "Sleeping" in err


def test_a_transaction_is_described_with_its_producer_timeout_and_partitions(ask_json, client, topic, new_id):
    producer = Producer(client, new_id()).add(topic, 0, 2)
    [row] = ask_json("transactions", "describe", producer.transactional_id)
    assert row.pop("duration_ms") >= 0
    assert row.pop("start_time_ms") > 0
    assert row == {
        "coordinator": 1,
        "transactional_id": producer.transactional_id,
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
        "state": OPEN,
        "timeout_ms": 600_000,
        "two_phase_commit": False,
        "partitions": [f"{topic}-0", f"{topic}-2"],
    }


def test_a_transaction_that_an_outside_manager_ends_is_told_from_others(ask_json, client, new_id):
    producer = Producer(client, new_id(), two_phase=True)
    [row] = ask_json("transactions", "describe", producer.transactional_id)
    assert (row["two_phase_commit"], row["timeout_ms"]) == (True, 2**31 - 1)


def test_a_transaction_that_an_outside_manager_ends_can_be_terminated(ask_json, client, topic, new_id):
    producer = Producer(client, new_id(), two_phase=True).add(topic, 0).write(topic)
    ask_json("transactions", "force-terminate", producer.transactional_id)
    assert read_committed(client, topic) == 2


def test_a_transactional_id_without_a_transaction_has_no_start(ask_json, client, new_id):
    producer = Producer(client, new_id())
    [row] = ask_json("transactions", "describe", producer.transactional_id)
    assert (row["start_time_ms"], row["duration_ms"]) == (None, None)


def test_what_is_not_known_is_told_and_the_rest_described(ask, client, new_id):
    known, unknown = new_id(), new_id()
    Producer(client, known)
    status, out, err = ask("transactions", "describe", unknown, known)
    assert status == 1
    assert known in out
    assert err == f"odradek: {unknown}: there is no such transactional id (TRANSACTIONAL_ID_NOT_FOUND)\n"


def test_producers_of_a_partition_are_described(ask_json, client, topic, new_id):
    ended = Producer(client, new_id()).add(topic, 1).write(topic, 1).commit()
    opened = Producer(client, new_id()).add(topic, 1).write(topic, 1)
    rows = {row["producer_id"]: row for row in ask_json("transactions", "describe-producers", "--topic", topic, "--partition", 1)}
    assert rows[ended.id]["start_offset"] is None
    assert rows[ended.id]["coordinator_epoch"] >= 0
    assert rows[opened.id] == {
        "producer_id": opened.id,
        "producer_epoch": opened.epoch,
        "coordinator_epoch": -1,
        "last_sequence": 0,
        "last_timestamp": LONG_AGO_MS,
        "start_offset": 2,
    }


def test_a_partition_that_is_not_there_is_told(ask, topic):
    status, _, err = ask("transactions", "describe-producers", "--topic", topic, "--partition", 7)
    assert (status, err) == (1, f"odradek: {topic}-7: there is no such topic or partition (UNKNOWN_TOPIC_OR_PARTITION)\n")


def test_a_transaction_whose_producer_nobody_knows_hangs(ask_json, client, topic):
    producer_id = write(client, topic, next(_numbers), epoch=3)
    [row] = ask_json("transactions", "find-hanging", "--topic", topic)
    assert row.pop("duration_min") > 0
    assert row == {
        "topic": topic,
        "partition": 0,
        "producer_id": producer_id,
        "producer_epoch": 3,
        "coordinator_epoch": -1,
        "start_offset": 0,
        "last_timestamp": LONG_AGO_MS,
    }


def test_a_transaction_that_has_the_partition_does_not_hang(ask_json, client, topic, new_id):
    Producer(client, new_id()).add(topic, 0).write(topic)
    assert ask_json("transactions", "find-hanging", "--topic", topic) == []


def test_a_partition_that_its_transaction_does_not_have_hangs(ask_json, client, topic, new_id):
    producer = Producer(client, new_id()).add(topic, 0).write(topic)
    producer.write(topic, 1)
    rows = ask_json("transactions", "find-hanging", "--topic", topic)
    assert [(row["partition"], row["producer_id"]) for row in rows] == [(1, producer.id)]


def test_what_may_still_be_ended_by_itself_does_not_hang(ask_json, client, topic):
    write(client, topic, next(_numbers))
    # So many minutes are more than two thousand years.
    assert ask_json("transactions", "find-hanging", "--topic", topic, "--max-transaction-timeout", 2**30) == []


@pytest.mark.parametrize(("options", "is_found"), [(("--partition", 0), True), (("--partition", 1), False), ((), True)])
def test_the_search_may_be_for_one_partition_only(ask_json, client, topic, options, is_found):
    write(client, topic, next(_numbers))
    assert bool(ask_json("transactions", "find-hanging", "--topic", topic, *options)) == is_found


def test_the_search_may_be_for_all_that_a_broker_has(ask_json, client, topic):
    producer_id = write(client, topic, next(_numbers))
    assert producer_id in {row["producer_id"] for row in ask_json("transactions", "find-hanging", "--broker-id", 1)}
    assert producer_id in {row["producer_id"] for row in ask_json("transactions", "find-hanging")}
    assert ask_json("transactions", "find-hanging", "--broker-id", 7) == []


def test_a_partition_without_a_topic_is_a_mistake_of_the_command_line(ask):
    status, _, err = ask("transactions", "find-hanging", "--partition", 0)
    assert (status, err) == (2, "odradek: --partition needs --topic\n")


def test_an_aborted_transaction_holds_up_readers_no_longer(ask_json, client, topic):
    producer_id = write(client, topic, next(_numbers))
    assert read_committed(client, topic) == 0
    assert ask_json("transactions", "abort", "--topic", topic, "--partition", 0, "--start-offset", 0) == [
        {"topic": topic, "partition": 0, "producer_id": producer_id, "producer_epoch": 0, "coordinator_epoch": 0}
    ]
    assert read_committed(client, topic) == 2
    assert ask_json("transactions", "find-hanging", "--topic", topic) == []


def test_a_transaction_is_aborted_by_its_producer_too(ask, client, topic):
    producer_id = write(client, topic, next(_numbers))
    named = ("--producer-id", producer_id, "--producer-epoch", 0, "--coordinator-epoch", -1)
    status, _, err = ask("transactions", "abort", "--topic", topic, "--partition", 0, *named)
    assert (status, err) == (0, "")
    assert read_committed(client, topic) == 2


def test_an_offset_where_no_transaction_begins_aborts_nothing(ask, client, topic):
    write(client, topic, next(_numbers))
    status, _, err = ask("transactions", "abort", "--topic", topic, "--partition", 0, "--start-offset", 1)
    assert status == 1
    assert f"{topic}-0: no open transaction begins at offset 1" in err
    assert read_committed(client, topic) == 0


def test_an_epoch_that_has_passed_aborts_nothing(ask, client, topic):
    producer_id = write(client, topic, next(_numbers), epoch=4)
    named = ("--producer-id", producer_id, "--producer-epoch", 3, "--coordinator-epoch", 0)
    status, _, err = ask("transactions", "abort", "--topic", topic, "--partition", 0, *named)
    assert (status, err) == (1, f"odradek: {topic}-0: the producer's epoch has changed (INVALID_PRODUCER_EPOCH)\n")
    assert read_committed(client, topic) == 0


@pytest.mark.parametrize(
    "named",
    [(), ("--producer-id", 1), ("--start-offset", 0, "--producer-id", 1), ("--producer-epoch", 1, "--coordinator-epoch", 1)],
    ids=lambda named: " ".join(map(str, named)) or "nothing",
)
def test_a_transaction_to_abort_is_named_in_one_way_and_wholly(ask, topic, named):
    status, out, _ = ask("transactions", "abort", "--topic", topic, "--partition", 0, *named)
    assert (status, out) == (2, "")


def test_a_producer_that_is_terminated_is_fenced_and_its_transaction_aborted(ask_json, client, topic, new_id):
    producer = Producer(client, new_id()).add(topic, 0).write(topic)
    [row] = ask_json("transactions", "force-terminate", producer.transactional_id)
    assert (row["transactional_id"], row["producer_id"]) == (producer.transactional_id, producer.id)
    assert row["producer_epoch"] > producer.epoch
    [described] = ask_json("transactions", "describe", producer.transactional_id)
    assert described["state"] == "Empty"
    assert read_committed(client, topic) == 2


def test_nobody_is_terminated_who_is_not_there(ask, ask_json, new_id):
    name = new_id()
    status, _, _ = ask("transactions", "force-terminate", name)
    assert status == 1
    assert name not in {row["transactional_id"] for row in ask_json("transactions", "list")}


def test_without_a_command_there_is_help(command):
    status, _, err = command("transactions")
    assert status == 2
    assert "find-hanging" in err
