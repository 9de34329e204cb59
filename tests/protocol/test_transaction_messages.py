"""TxnOffsetCommit and EndTxn by hand, against kio's writers and the general encoder."""

import random
from itertools import product

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.messages import messages
from odradek.protocol.transaction_messages import read_end_txn_request, read_txn_offset_commit_request
from tests.cases import each_case
from tests.kio_schemas import load
from tests.protocol.kio_messages import fields_of
from tests.protocol.random_messages import random_message
from tests.protocol.test_requests import encode

VERSIONS = (3, 4, 5)
READERS = {ApiKey.TXN_OFFSET_COMMIT: read_txn_offset_commit_request, ApiKey.END_TXN: read_end_txn_request}
_MESSAGES = list(product(READERS, VERSIONS))


def as_told(message):
    """All that is in it, by name."""
    if hasattr(message, "_fields"):
        return {name: as_told(value) for name, value in message._asdict().items()}
    return [as_told(each) for each in message] if isinstance(message, list | tuple) else message


@each_case(("api_key", "version"), _MESSAGES)
def test_what_kio_writes_is_read(api_key, version):
    rng = random.Random(f"{api_key}-{version}")
    entity = load(api_key, version, "request")
    for _ in range(50):
        message = random_message(entity, rng)
        found = as_told(READERS[api_key](encode(message), 1))
        expected = fields_of(message)
        assert {name: expected[name] for name in found} == found
        assert set(found) == set(messages(api_key).request._fields)


@each_case(("api_key", "version"), _MESSAGES)
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
