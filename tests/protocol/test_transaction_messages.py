"""TxnOffsetCommit and EndTxn by hand, against kio's writers and the general encoder."""

import random

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.messages import messages
from odradek.protocol.responses import framed, response_encoder
from odradek.protocol.schemas import load
from odradek.protocol.transaction_messages import (
    EndTxnRequest,
    OffsetsOfTopic,
    TxnOffsetCommitRequest,
    accepted_offsets_body,
    ended_transaction_body,
    read_end_txn_request,
    read_txn_offset_commit_request,
)
from tests.protocol.random_messages import random_message
from tests.protocol.test_requests import encode

VERSIONS = (3, 4, 5)
COMMIT = messages(ApiKey.TXN_OFFSET_COMMIT)
END = messages(ApiKey.END_TXN)
READ = (EndTxnRequest, OffsetsOfTopic, TxnOffsetCommitRequest)
READERS = {ApiKey.TXN_OFFSET_COMMIT: read_txn_offset_commit_request, ApiKey.END_TXN: read_end_txn_request}
_MESSAGES = [pytest.param(api_key, version, id=f"{api_key.name}-v{version}") for api_key in READERS for version in VERSIONS]


def as_told(request):
    """All that is in it, by name."""
    # A compiled class has no slots that could be seen.
    public = [name for name in dir(request) if not name.startswith("_")]
    names = public if isinstance(request, READ) else getattr(type(request), "__slots__", None)
    if isinstance(request, list | tuple) and not hasattr(request, "_fields"):
        return [as_told(each) for each in request]
    if hasattr(request, "_fields"):
        return request._asdict()
    return {name: as_told(getattr(request, name)) for name in names} if names else request


@pytest.mark.parametrize(("api_key", "version"), _MESSAGES)
def test_what_kio_writes_is_read(api_key, version):
    rng = random.Random(f"{api_key}-{version}")
    entity = load(api_key, version, "request")
    for _ in range(50):
        message = random_message(entity, rng)
        found = as_told(READERS[api_key](encode(message), 1))
        expected = as_told(message)
        assert {name: expected[name] for name in found} == found
        assert set(found) == set(messages(api_key).request.__slots__)


@pytest.mark.parametrize(("api_key", "version"), _MESSAGES)
def test_unknown_tags_are_skipped_and_those_that_do_not_end_are_not(api_key, version):
    body = encode(random_message(load(api_key, version, "request"), random.Random(1)))[1:]
    assert body[-1] == 0
    READERS[api_key](body[:-1] + b"\x01\x07\x02ab", 0)
    with pytest.raises(MalformedMessage):
        READERS[api_key](body[:-1] + b"\x01\x07\x03ab", 0)


def test_text_that_is_none_is_malformed():
    with pytest.raises(MalformedMessage, match="UTF-8"):
        read_end_txn_request(b"\x02\xff" + bytes(12), 0)
    with pytest.raises(MalformedMessage, match="UTF-8"):
        read_txn_offset_commit_request(b"\x02\xff" + bytes(40), 0)
    with pytest.raises(MalformedMessage, match="the transactional id is null"):
        read_end_txn_request(bytes(12), 0)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("counts", [[], [1], [0, 3], [200, 1]])
def test_accepted_offsets_are_what_the_general_encoder_makes_of_them(version, counts):
    classes = COMMIT.classes["response"]
    topics = [
        classes["TxnOffsetCommitResponseTopic"](
            name="\u00e4" * (number + 1),
            partitions=[classes["TxnOffsetCommitResponsePartition"](partition_index=index) for index in range(count)],
        )
        for number, count in enumerate(counts)
    ]
    (expected,) = response_encoder(ApiKey.TXN_OFFSET_COMMIT, version)(7, COMMIT.TxnOffsetCommitResponse(topics=topics))
    assert framed(7, accepted_offsets_body(topics)) == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_an_ended_transaction_is_what_the_general_encoder_makes_of_it(version):
    response = END.EndTxnResponse(producer_id=2**40, producer_epoch=9) if version >= 5 else END.EndTxnResponse()
    (expected,) = response_encoder(ApiKey.END_TXN, version)(-1, response)
    assert framed(-1, ended_transaction_body(version, 2**40, 9)) == expected
