"""The share coordinators of odradek and Apache Kafka 4.4: the same requests leave the same answers and, but for times, records.

Both run on copies of one directory. Then each runs on the directory that the other has left, and finds the same state.
"""

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.coordinator_records import ShareSnapshotValue, decode_share_state_key, decode_value
from odradek.protocol.errors import ErrorCode
from odradek.protocol.plain_batches import read_batch
from odradek.protocol.record_batch import iter_batches
from tests.campaigns.growing_out.engines import KAFKA, ODRADEK, OneDirectory
from tests.raw_client import RawClient

pytestmark = [pytest.mark.xdist_group("kafka-tools"), pytest.mark.timeout(240)]

SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
}
UNKNOWN_TOPIC = UUID(int=1 << 127)
NOT_YET = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
# API: its version, and how often it is drawn.
WEIGHTS = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (0, 6),
    ApiKey.READ_SHARE_GROUP_STATE: (0, 6),
    ApiKey.WRITE_SHARE_GROUP_STATE: (1, 80),
    ApiKey.DELETE_SHARE_GROUP_STATE: (0, 1),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (1, 2),
}
Answers = list[tuple[str, list[str]]]


def requests(random: Random, topic_id: UUID, count: int) -> Iterator[tuple[ApiKey, int, dict[str, Any]]]:
    """Requests for the state of few share partitions, most of them admitted, some of them fenced or invalid."""
    for _ in range(count):
        [(api_key, (version, _))] = random.choices(list(WEIGHTS.items()), [weight for _, weight in WEIGHTS.values()])
        partition = {"partition": random.choice([0, 1, 2] * 5 + [-1, 3])}
        if api_key in {ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.WRITE_SHARE_GROUP_STATE}:
            partition["state_epoch"] = epoch(random)
            partition["start_offset"] = random.choice([-1, 0, 3, 8, 15, 22])
        if api_key not in {ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE}:
            partition["leader_epoch"] = epoch(random)
        if api_key == ApiKey.WRITE_SHARE_GROUP_STATE:
            partition["delivery_complete_count"] = random.choice([-1, 0, 3, 9])
            partition["state_batches"] = [batch(random) for _ in range(random.randint(0, 4))]
        [chosen_id] = random.choices([topic_id, UNKNOWN_TOPIC], [60, 1])
        topics = [{"topic_id": chosen_id, "partitions": [partition]}]
        yield api_key, version, {"group_id": random.choice(["g", "ü"]), "topics": topics}


def epoch(random: Random) -> int:
    return random.choices([-1, 0, 1, 2, 3], [1, 1, 3, 40, 3])[0]


def batch(random: Random) -> dict[str, int]:
    first, size = random.randint(0, 40), random.randint(0, 9)
    state, count = random.choice([0, 2, 4]), random.randint(1, 3)
    return {"first_offset": first, "last_offset": first + size, "delivery_state": state, "delivery_count": count}


def answers(place: OneDirectory, asked: list[tuple[ApiKey, int, dict[str, Any]]]) -> list[Answers]:
    with RawClient("127.0.0.1", place.port) as client:
        return [answer(client, *each) for each in asked]


def answer(client: RawClient, api_key: ApiKey, version: int, fields: dict[str, Any]) -> Answers:
    """The answer, asked for again while the coordinator is not ready."""
    deadline_s = time.monotonic() + 60
    while True:
        response = client.call(api_key, version, **fields)
        results = response.coordinators if api_key == ApiKey.FIND_COORDINATOR else response.results
        items = [item for result in results for item in getattr(result, "partitions", (result,))]
        if not any(item.error_code in NOT_YET for item in items):
            return [(str(getattr(result, "topic_id", "")), [repr(each) for each in items]) for result in results]
        assert time.monotonic() < deadline_s, response
        time.sleep(0.1)


def records(data: Path) -> dict[str, list[tuple[bytes, bytes | None]]]:
    """The keys and values of each partition of the topic, without the times in snapshots."""
    found: dict[str, list[tuple[bytes, bytes | None]]] = {}
    for path in sorted(data.glob("__share_group_state-*/*.log")):
        log = path.read_bytes()
        for position, header in iter_batches(log):
            of_batch = read_batch(log[position : position + header.size_bytes])
            found.setdefault(path.parent.name, []).extend((key, without_times(key, value)) for _, key, value in of_batch)
    return found


def without_times(key: bytes, value: bytes | None) -> bytes | None:
    """A value without the two times that a snapshot has behind fields of 2, 4, 4, 4 and 8 bytes."""
    decoded = decode_value(decode_share_state_key(key), value)
    if value is None or not isinstance(decoded, ShareSnapshotValue):
        return value
    assert decoded.create_timestamp_ms == decoded.write_timestamp_ms
    return value[:22] + value[38:]


def serve(place: OneDirectory, engine: str, asked: list[tuple[ApiKey, int, dict[str, Any]]]) -> list[Answers]:
    place.start(engine)
    try:
        answers(place, [(ApiKey.FIND_COORDINATOR, 6, {"key_type": 2, "coordinator_keys": ["g:AQIDBAUGBwgJCgsMDQ4PEA:0"]})])
        return answers(place, asked)
    finally:
        place.end(signal.SIGTERM)


def test_the_same_requests_leave_the_same_answers_and_records(tmp_path):
    places = {}
    for engine in (ODRADEK, KAFKA):
        (tmp_path / engine).mkdir()
        places[engine] = OneDirectory(tmp_path / engine, SETTINGS, {})
    place = places[ODRADEK]
    place.start(ODRADEK)
    with RawClient("127.0.0.1", place.port) as client:
        topics = [{"name": "t", "num_partitions": 3, "replication_factor": 1}]
        topic_id = client.call(ApiKey.CREATE_TOPICS, 7, topics=topics).topics[0].topic_id
    place.end(signal.SIGTERM)
    shutil.copytree(place.data, places[KAFKA].data)

    asked = list(requests(Random(44), topic_id, 800))
    told = {engine: serve(each, engine, asked) for engine, each in places.items()}
    for request, ours, theirs in zip(asked, told[ODRADEK], told[KAFKA], strict=True):
        assert ours == theirs, request
    ours, theirs = (records(each.data) for each in places.values())
    assert ours == theirs
    assert sum(map(len, ours.values())) > 200

    topics = [{"topic_id": topic_id, "partitions": [{"partition": index} for index in range(3)]}]
    summaries = [(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, {"group_id": group, "topics": topics}) for group in ("g", "ü")]
    assert serve(places[ODRADEK], KAFKA, summaries) == serve(places[KAFKA], ODRADEK, summaries)
