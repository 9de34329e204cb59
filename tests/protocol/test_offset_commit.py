"""The OffsetCommit reader of our own against kio's writers, and answers encoded once against those encoded anew."""

import contextlib
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from odradek.protocol.accepted_commit import AcceptedCommit
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder, success_encoder
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.messages import messages
from odradek.protocol.offset_commit import read_offset_commit_request
from tests.cases import each_case
from tests.kio_schemas import load
from tests.protocol.random_messages import random_message
from tests.protocol.test_requests import encode

M = messages(ApiKey.OFFSET_COMMIT)
VERSIONS = (8, 9, 10)


def body_of(message):
    return encode(message)[1:]


def as_told(request, version):
    topics = [
        (
            topic.topic_id if version >= 10 else topic.name,
            [
                (each.partition_index, each.committed_offset, each.committed_leader_epoch, each.committed_metadata)
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return request.group_id, request.generation_id_or_member_epoch, request.member_id, request.group_instance_id, topics


def commit(version, *, group="g", offset=7, topic=None, metadata=""):
    requests = load(ApiKey.OFFSET_COMMIT, version, "request")
    module = __import__(requests.__module__, fromlist=["x"])
    partition = module.OffsetCommitRequestPartition(
        partition_index=3, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=metadata
    )
    named = {"topic_id": topic} if version >= 10 else {"name": topic or "t"}
    return requests(
        group_id=group,
        generation_id_or_member_epoch=4,
        member_id="m",
        group_instance_id=None,
        topics=(module.OffsetCommitRequestTopic(partitions=(partition,), **named),),
    )


def test_brokers_in_several_threads_share_what_is_remembered():
    frames = {number: body_of(commit(8, group=f"group {number}", offset=number)) for number in range(5_000)}

    def wrong(numbers):
        read = [(number, read_offset_commit_request(frames[number], 0, 8)) for number in numbers for _ in range(2)]
        return [number for number, request in read if request.group_id != f"group {number}"]

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(wrong, [random.Random(seed).sample(sorted(frames), 5_000) for seed in range(4)]))
    assert found == [[], [], [], []]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_kio_writes_is_read_the_first_time_and_again(version):
    rng = random.Random(version)
    for _ in range(60):
        message = random_message(load(ApiKey.OFFSET_COMMIT, version, "request"), rng)
        body = body_of(message)
        for _ in range(2):
            assert as_told(read_offset_commit_request(body, 0, version), version) == as_told(message, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_remembered_of_one_commit_is_not_taken_for_another(version):
    for group in ("g", "h", "longer"):
        for offset in (1, 2):
            message = commit(version, group=group, offset=offset)
            assert as_told(read_offset_commit_request(body_of(message), 0, version), version) == as_told(message, version)


def test_a_name_is_not_taken_for_a_topic_id_that_begins_with_the_same_bytes():
    by_name = body_of(commit(8, topic="abcdefghijklmno"))
    read_offset_commit_request(by_name, 0, 8)
    position = by_name.index(b"\x10abcdefghijklmno")
    request = read_offset_commit_request(by_name, 0, 10)
    assert request.topics[0].topic_id.bytes == by_name[position : position + 16]
    assert request.topics[0].name == ""


@each_case("metadata", ["", None, "m", "x" * 200])
def test_metadata_is_read_as_it_was_written(metadata):
    message = commit(9, metadata=metadata)
    assert read_offset_commit_request(body_of(message), 0, 9).topics[0].partitions[0].committed_metadata == metadata


@pytest.mark.parametrize("version", VERSIONS)
def test_each_shorter_request_is_malformed(version):
    body = body_of(commit(version))
    read_offset_commit_request(body, 0, version)
    for size in range(len(body)):
        with pytest.raises(MalformedMessage):
            read_offset_commit_request(body[:size], 0, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_changed_byte_gives_another_request_or_is_malformed(version):
    body = bytearray(body_of(random_message(load(ApiKey.OFFSET_COMMIT, version, "request"), random.Random(f"flip-{version}"))))
    for position in range(len(body)):
        for value in (0, 0x7F, 0x80, 0xFF):
            changed = body.copy()
            changed[position] = value
            with contextlib.suppress(MalformedMessage):
                read_offset_commit_request(bytes(changed), 0, version)


def test_tags_nobody_knows_are_skipped():
    body = body_of(commit(8))
    assert body.endswith(b"\x01\0\0\0")
    body = body[:-3] + b"\x01\x05\x02zz" + b"\x01\x07\x00" + b"\x01\x63\x01y"
    assert read_offset_commit_request(body, 0, 8).topics[0].partitions == ((3, 7, -1, ""),)


@each_case("where", ["group", "member", "topics", "partitions"])
def test_a_null_where_none_may_be_is_malformed(where):
    parts = {"group": b"\x02g", "generation": b"\0\0\0\4", "member": b"\x02m", "instance": b"\0", "topics": b"\x02"}
    parts |= {"topic": b"\x02t", "partitions": b"\x02", "rest": body_of(commit(8))[-20:]}
    parts[where] = b"\0"
    with pytest.raises(MalformedMessage, match="null"):
        read_offset_commit_request(b"".join(parts.values()), 0, 8)


def test_a_count_of_billions_takes_no_memory():
    body = b"\x02g" + b"\0\0\0\4" + b"\x02m" + b"\0" + b"\xff\xff\xff\xff\x0f" + b"\x02t"
    with pytest.raises(MalformedMessage):
        read_offset_commit_request(body, 0, 8)


@each_case("version", range(2, 11))
def test_an_answer_encoded_once_is_the_one_encoded_anew(version):
    topics = [M.OffsetCommitResponseTopic(name="t", partitions=[M.OffsetCommitResponsePartition(partition_index=3)])]
    accepted = AcceptedCommit(topics=topics)
    encode_success = success_encoder(ApiKey.OFFSET_COMMIT, version)
    assert encode_success is not None
    for correlation_id in (7, 2**31 - 1, -1):
        (anew,) = response_encoder(ApiKey.OFFSET_COMMIT, version)(correlation_id, M.OffsetCommitResponse(topics=topics))
        assert encode_success(correlation_id, accepted) == anew
    assert encode_success(7, M.OffsetCommitResponse(topics=topics)) is None
