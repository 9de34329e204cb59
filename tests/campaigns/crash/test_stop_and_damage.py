"""A graceful stop, and how the broker handles log files that changed since."""

import json
import shutil
import time

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.record_batch import LOG_OVERHEAD
from tests.campaigns.crash.support import read_log
from tests.raw_client import RawClient, encode_request, fetch_fields

NONE, OFFSET_OUT_OF_RANGE, LEADER_NOT_AVAILABLE, KAFKA_STORAGE_ERROR = 0, 1, 5, 56
STOP_LIMIT_S = 5.0
RECORDS = 50


def connect(broker):
    return RawClient(broker.host, broker.port)


def create_topics(client, *names):
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    created = client.call(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout_ms=5000).topics
    assert [topic.error_code for topic in created] == [NONE] * len(names)


def fill(client, topic):
    for number in range(RECORDS):
        assert client.produce(topic, b"%d" % number).error_code == NONE


def values(broker, topic):
    with connect(broker) as client:
        return [record.value for record in read_log(client, topic)]


ALL = [b"%d" % number for number in range(RECORDS)]


@pytest.fixture
def broker(broker_process):
    """A broker with records on the topics "damaged" and "other"."""
    broker = broker_process()
    with connect(broker) as client:
        create_topics(client, "damaged", "other")
        fill(client, "damaged")
        fill(client, "other")
    return broker


def log_file(broker, topic):
    return broker.data_dir / f"{topic}-0" / f"{0:020}.log"


def damage_batch(broker, topic, number):
    """Change one byte of the payload of a topic's batch with that number."""
    path = log_file(broker, topic)
    data = bytearray(path.read_bytes())
    position = 0
    for _ in range(number):
        position += LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + 12], "big")
    size = LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + 12], "big")
    data[position + size - 3] ^= 0xFF
    path.write_bytes(data)


def events(broker, name):
    return [event for event in map(json.loads, broker.stderr.splitlines()) if event["event"] == name]


def test_a_fetch_that_waits_is_answered_before_a_graceful_stop(broker):
    with connect(broker) as waiting, connect(broker) as other:
        waiting.send(ApiKey.FETCH, 12, **fetch_fields("other", RECORDS, max_wait_ms=60_000))
        # Once another connection's later request is answered, the fetch waits in the broker.
        other.call(ApiKey.API_VERSIONS, 0)
        started = time.monotonic()
        assert broker.stop() == 0
        assert time.monotonic() - started < STOP_LIMIT_S
        data = waiting.receive(ApiKey.FETCH, 12).responses[0].partitions[0]
        assert (data.error_code, data.high_watermark, data.records or b"") == (NONE, RECORDS, b"")
        assert waiting.is_closed_by_peer()


def test_requests_that_have_arrived_are_answered_before_a_graceful_stop(broker):
    count = 50
    with connect(broker) as client:
        client.socket.sendall(b"".join(encode_request(ApiKey.METADATA, 12, number, topics=None) for number in range(count)))
        first = client.receive_frame()
        assert broker.stop() == 0
        answers = [first]
        while (frame := client.receive_frame()) is not None:
            answers.append(frame)
    assert [int.from_bytes(frame[:4], "big") for frame in answers] == list(range(count))


def test_a_clean_start_takes_the_logs_as_they_are(broker):
    assert broker.stop() == 0
    damage_batch(broker, "damaged", 5)
    broker.start()
    # Reading the log again would have found the damage.
    with connect(broker) as client:
        assert client.produce("damaged", b"next").base_offset == RECORDS
    assert [json.loads(line)["event"] for line in broker.stderr.splitlines()] == ["broker stopped"]


def test_a_batch_damaged_below_the_recovery_point_does_not_stop_the_rest_from_serving(broker):
    assert broker.stop() == 0
    broker.start()
    with connect(broker) as client:
        assert client.produce("damaged", b"next").base_offset == RECORDS
    broker.kill9()
    damage_batch(broker, "damaged", 5)
    broker.start()
    with connect(broker) as client:
        assert client.produce("damaged", b"after").base_offset == RECORDS + 1


def test_deleted_records_stay_deleted_after_a_kill(broker):
    with connect(broker) as client:
        asked = {"name": "other", "partitions": [{"partition_index": 0, "offset": 20}]}
        (deleted,) = client.call(ApiKey.DELETE_RECORDS, 2, topics=[asked], timeout_ms=5000).topics
        assert (deleted.partitions[0].error_code, deleted.partitions[0].low_watermark) == (NONE, 20)
    broker.kill9()
    broker.start()
    with connect(broker) as client:
        assert (
            client.call(ApiKey.FETCH, 12, **fetch_fields("other", 19)).responses[0].partitions[0].error_code
            == OFFSET_OUT_OF_RANGE
        )
        assert client.call(ApiKey.FETCH, 12, **fetch_fields("other", 20)).responses[0].partitions[0].log_start_offset == 20


@pytest.mark.parametrize("garbage", [b"\x00", b"\x00" * 5000, b"garbage" * 1000, "half a batch"])
def test_a_torn_tail_is_cut_off_with_a_warning_that_says_how_many_bytes(broker, garbage):
    broker.kill9()
    path = log_file(broker, "damaged")
    whole = path.read_bytes()
    if garbage == "half a batch":
        garbage = RECORDS.to_bytes(8, "big") + whole[8:40]
    path.write_bytes(whole + garbage)
    broker.start()
    (event,) = events(broker, "torn tail truncated")
    assert (event["level"], event["truncated_bytes"], event["next_offset"]) == ("warning", len(garbage), RECORDS)
    assert event["segment"] == str(path)
    assert path.read_bytes() == whole
    with connect(broker) as client:
        assert client.produce("damaged", b"next").base_offset == RECORDS
    assert values(broker, "damaged") == [*ALL, b"next"]


def test_a_tail_whose_end_is_missing_is_cut_off(broker):
    broker.kill9()
    path = log_file(broker, "damaged")
    path.write_bytes(path.read_bytes()[:-7])
    broker.start()
    (event,) = events(broker, "torn tail truncated")
    assert event["next_offset"] == RECORDS - 1
    assert values(broker, "damaged") == ALL[:-1]


@pytest.fixture
def broker_with_damage(broker):
    """Restarted after a kill, with a damaged batch before others that are sound."""
    broker.kill9()
    damage_batch(broker, "damaged", 5)
    broker.start()
    return broker


def test_damage_before_sound_batches_takes_that_partition_offline(broker_with_damage):
    broker = broker_with_damage
    with connect(broker) as client:
        (topic,) = client.call(ApiKey.METADATA, 12, topics=[{"name": "damaged", "topic_id": None}]).topics
        (partition,) = topic.partitions
        assert (topic.error_code, partition.error_code, partition.leader_id) == (NONE, LEADER_NOT_AVAILABLE, -1)
        assert client.produce("damaged", b"x").error_code == KAFKA_STORAGE_ERROR
        fetched = client.call(ApiKey.FETCH, 12, **fetch_fields("damaged", 0))
        assert fetched.responses[0].partitions[0].error_code == KAFKA_STORAGE_ERROR
        asked = {"name": "damaged", "partitions": [{"partition_index": 0, "timestamp": -1}]}
        (listed,) = client.call(ApiKey.LIST_OFFSETS, 6, replica_id=-1, topics=[asked]).topics
        assert listed.partitions[0].error_code in {KAFKA_STORAGE_ERROR, LEADER_NOT_AVAILABLE}
    (event,) = events(broker, "partition offline")
    assert (event["topic"], event["partition"]) == ("damaged", 0)
    assert str(log_file(broker, "damaged")) in event["reason"]
    assert "position" in event["reason"]


def test_damage_to_one_partition_does_not_concern_the_others(broker_with_damage):
    broker = broker_with_damage
    assert values(broker, "other") == ALL
    with connect(broker) as client:
        assert client.produce("other", b"x").base_offset == RECORDS


def test_a_damaged_log_is_left_as_it_is(broker_with_damage):
    broker = broker_with_damage
    damaged = log_file(broker, "damaged").read_bytes()
    assert broker.stop() == 0
    broker.start()
    assert log_file(broker, "damaged").read_bytes() == damaged
    assert len(events(broker, "partition offline")) == 2


def test_an_offline_topic_can_be_deleted_and_made_anew(broker_with_damage):
    broker = broker_with_damage
    with connect(broker) as client:
        (deleted,) = client.call(ApiKey.DELETE_TOPICS, 6, topics=[{"name": "damaged"}], timeout_ms=5000).responses
        assert deleted.error_code == NONE
        create_topics(client, "damaged")
        assert client.produce("damaged", b"x").base_offset == 0


NOTICED_S = 15.0


def test_a_broker_whose_data_directory_is_removed_ends_with_a_line(broker_process):
    broker = broker_process()
    shutil.rmtree(broker.data_dir)
    assert broker.wait_ended(NOTICED_S) == 1
    assert f"{broker.data_dir}, failed: the directory was removed" in broker.stderr
    assert "Traceback" not in broker.stderr


def test_a_lock_file_alone_may_go(broker_process):
    broker = broker_process()
    (broker.data_dir / ".lock").unlink()
    assert broker.stop() == 0
