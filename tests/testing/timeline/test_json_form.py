"""Messages as JSON: every API's, with a value in each field."""

import json
from base64 import b64encode
from types import NoneType, UnionType
from typing import Union, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from odradek.protocol.message_types.create_delegation_token import CreateDelegationTokenResponse
from odradek.protocol.message_types.describe_delegation_token import DescribedDelegationToken, DescribeDelegationTokenResponse
from odradek.protocol.message_types.expire_delegation_token import ExpireDelegationTokenRequest
from odradek.protocol.message_types.renew_delegation_token import RenewDelegationTokenRequest
from odradek.protocol.messages import SECRETS, messages
from odradek.testing.timeline.events import short
from odradek.testing.timeline.messages import OmittedRecords, from_json, request_class, to_json
from tests.cases import each_case


def filled(hint):
    """A value of this type that is not its default."""
    if hasattr(hint, "_fields"):
        hints = get_type_hints(hint)
        return hint(*(filled(hints[name]) for name in hint._fields))
    if get_origin(hint) in (Union, UnionType):
        return filled(next(each for each in get_args(hint) if each is not NoneType))
    if get_origin(hint) is not None:
        return (filled(get_args(hint)[0]),) * 2
    return {int: 7, str: "text", bool: True, float: 0.5, UUID: UUID(int=7)}.get(hint, b"\0\xff")


@each_case("api", ApiKey, ids=lambda api: api.name)
def test_a_message_is_the_same_after_json(api):
    for message_class in (request_class(api), messages(api).response):
        for message in (filled(message_class), message_class()):
            assert from_json(message_class, json.loads(json.dumps(to_json(message)))) == without_secrets(message)


def without_secrets(value):
    """A message whose secrets have their defaults."""
    if not hasattr(value, "_fields"):
        return tuple(map(without_secrets, value)) if isinstance(value, tuple) else value
    secrets = dict.fromkeys(SECRETS.get(type(value).__name__, ()), b"")
    return type(value)(*map(without_secrets, value))._replace(**secrets)


def test_no_secret_is_in_a_timeline():
    secret, known = b"a secret, which is long enough", b"salt"
    upsertion = ScramCredentialUpsertion(name="alice", mechanism=1, iterations=4096, salt=known, salted_password=secret)
    for message in (
        AlterUserScramCredentialsRequest(upsertions=(upsertion,)),
        CreateDelegationTokenResponse(token_id="id", hmac=secret),
        RenewDelegationTokenRequest(hmac=secret),
        ExpireDelegationTokenRequest(hmac=secret),
        DescribeDelegationTokenResponse(tokens=(DescribedDelegationToken(token_id="id", hmac=secret),)),
    ):
        for told in (json.dumps(to_json(message)), short(message), repr(message)):
            assert b64encode(secret).decode() not in told
            assert repr(secret) not in told


def test_records_that_were_left_out_stay_so():
    produce = request_class(ApiKey.PRODUCE)
    request = filled(produce)
    [topic, _] = request.topic_data
    request = request._replace(
        topic_data=(topic._replace(partition_data=(topic.partition_data[0]._replace(records=OmittedRecords(5)),)),)
    )
    assert from_json(produce, json.loads(json.dumps(to_json(request)))) == request


@each_case("value", [{"unknown": 1}, {"topic_data": 5}, {"topic_data": [{"topic_id": "not an id"}]}, [], None])
def test_what_is_no_message_is_refused(value):
    with pytest.raises(ValueError):
        from_json(request_class(ApiKey.PRODUCE), value)
