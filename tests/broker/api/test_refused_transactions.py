"""Refusals of a transactional producer's requests over a raw socket, in every version."""

from functools import partial

import pytest

from odradek.protocol.errors import ErrorCode
from tests.broker.api.transaction_requests import add, add_offsets, end, init

MAPPING, REQUEST = ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_REQUEST
# By name: how to ask, and how many versions there are.
ASKED = {
    "AddPartitionsToTxn": (lambda client, topic, *who, version: add(client, *who, topic, version)[0], 6),
    "AddOffsetsToTxn": (lambda client, _, *who, version: add_offsets(client, *who, "no-group", version), 5),
    "EndTxn": (lambda client, _, *who, version: end(client, *who, version), 6),
}


@pytest.fixture(params=[(name, version) for name, (_, count) in ASKED.items() for version in range(count)], ids=str)
def asked(request, client, topic):
    """(version, the error of what is asked by a transactional id and a producer)."""
    name, version = request.param
    return version, partial(ASKED[name][0], client, topic[0], version=version)


def test_the_epoch_before_is_fenced_in_the_words_of_the_version(asked, client, new_id):
    version, ask = asked
    name = new_id()
    producer = init(client, name)
    init(client, name)
    assert ask(name, producer) == (ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED)


def test_an_id_that_was_never_initialized_has_no_transaction(asked, new_id):
    _, ask = asked
    assert (ask(new_id(), (1, 0)), ask("", (1, 0))) == (MAPPING, REQUEST)
