"""AlterClientQuotas: what is set is told, and what cannot be is refused as Kafka refuses it."""

import asyncio

import pytest

from odradek.common.context import RequestContext, Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from odradek.protocol.message_types.describe_client_quotas import ComponentData
from tests.broker.api.bed import ask

DEFAULT = None
INVALID = ErrorCode.INVALID_REQUEST
PRODUCE, CONSUME, REQUESTS, CONNECTIONS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "connection_creation_rate",
)


def entry(entity, **values):
    """``values`` by key; None removes."""
    ops = [OpData(key, 0.0 if value is None else value, value is None) for key, value in values.items()]
    return RequestEntryData([RequestEntityData(*part) for part in entity.items()], ops)


def alter(broker, *entries, validate_only=False):
    """The code and the message of each entity, in the order of the entities' names."""
    answer = ask(broker, ApiKey.ALTER_CLIENT_QUOTAS, entries=list(entries), validate_only=validate_only)
    return [(frozenset(map(tuple, each.entity)), each.error_code, each.error_message) for each in answer.entries]


def refusal(broker, *entries):
    """The one code and message."""
    ((_, code, message),) = alter(broker, *entries)
    return code, message


def named(**names):
    """An entity; ``client`` is its client id."""
    return {{"client": "client-id"}.get(kind, kind): name for kind, name in names.items()}


def key(names):
    return frozenset(names.items())


def described(broker, *components, strict=False):
    answer = ask(broker, ApiKey.DESCRIBE_CLIENT_QUOTAS, components=[ComponentData(*each) for each in components], strict=strict)
    assert (answer.error_code, answer.error_message) == (0, "")
    return {frozenset(map(tuple, each.entity)): dict(map(tuple, each.values)) for each in answer.entries}


def test_what_is_set_is_told_replaced_and_removed_by_key(core):
    both = named(user="alice", client=DEFAULT)
    assert alter(core, entry(both, **{PRODUCE: 5.0, REQUESTS: 12.5})) == [(key(both), 0, None)]
    assert described(core) == {key(both): {PRODUCE: 5.0, REQUESTS: 12.5}}
    alter(core, entry(both, **{PRODUCE: 6.0, REQUESTS: None, CONSUME: None}))
    assert described(core) == {key(both): {PRODUCE: 6.0}}
    alter(core, entry(both, **{PRODUCE: None}))
    assert described(core) == {}


def test_only_what_changes_is_written(core):
    alice = named(user="alice")
    alter(core, entry(alice, **{PRODUCE: 5.0}))
    end, version = core.controller.log_end_offset, core.controller.image.quotas.version
    alter(core, entry(alice, **{PRODUCE: 5.0, CONSUME: None}))
    assert (core.controller.log_end_offset, core.controller.image.quotas.version) == (end, version)


def test_nothing_is_written_where_it_is_only_validated(core):
    alice = named(user="alice")
    assert alter(core, entry(alice, **{PRODUCE: 5.0}), validate_only=True) == [(key(alice), 0, None)]
    assert described(core) == {}
    ((_, code, _),) = alter(core, entry(alice, **{PRODUCE: -5.0}), validate_only=True)
    assert code == INVALID


@pytest.mark.parametrize(
    ("entity", "values", "message"),
    [
        ({}, {PRODUCE: 1.0}, "Invalid empty client quota entity"),
        (named(group="g"), {PRODUCE: 1.0}, "Unhandled client quota entity type: group"),
        (named(user=""), {PRODUCE: 1.0}, "Empty user not supported"),
        (named(client=""), {PRODUCE: 1.0}, "Empty client-id not supported"),
        (named(ip=""), {CONNECTIONS: 1.0}, "Empty ip not supported"),
        (
            named(ip="10.0.0.1", user="u"),
            {CONNECTIONS: 1.0},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        (named(user="u"), {CONNECTIONS: 1.0}, f"Invalid configuration key {CONNECTIONS}"),
        (named(ip=DEFAULT), {PRODUCE: 1.0}, f"Invalid configuration key {PRODUCE}"),
        (named(user="u"), {"no_such_key": 1.0}, "Invalid configuration key no_such_key"),
        (named(user="u"), {PRODUCE: 0.0}, f"Quota {PRODUCE} must be greater than 0"),
        (named(user="u"), {REQUESTS: -1.0}, f"Quota {REQUESTS} must be greater than 0"),
        (named(user="u"), {PRODUCE: 1.5}, f"{PRODUCE} cannot be a fractional value."),
        (named(user="u"), {PRODUCE: float("inf")}, f"Quota {PRODUCE} must be a finite number"),
        (named(user="u"), {PRODUCE: float("nan")}, f"Quota {PRODUCE} must be a finite number"),
        (named(user="u"), {PRODUCE: 1e19}, f"Proposed value for {PRODUCE} is too large for a LONG."),
        (named(ip=DEFAULT), {CONNECTIONS: 2.0**31}, f"Proposed value for {CONNECTIONS} is too large for an INT."),
        (named(ip=DEFAULT), {CONNECTIONS: 0.5}, f"{CONNECTIONS} cannot be a fractional value."),
    ],
)
def test_what_cannot_be_is_refused_and_others_are_not(core, entity, values, message):
    answers = alter(core, entry(entity, **values), entry(named(user="bob"), **{PRODUCE: 1.0}))
    assert answers == [(key(entity), INVALID, message), (key(named(user="bob")), 0, None)]
    assert described(core) == {key(named(user="bob")): {PRODUCE: 1.0}}


@pytest.mark.parametrize(
    ("entity", "values"),
    [
        (named(user="u"), {REQUESTS: 0.01}),
        (named(user="u"), {PRODUCE: 2.0**63}),
        (named(user="u"), {PRODUCE: 1.0000001}),
        (named(ip="::1"), {CONNECTIONS: 2.0**31 - 1}),
        (named(ip=DEFAULT), {CONNECTIONS: 1.0}),
    ],
)
def test_the_limits_themselves_may_be(core, entity, values):
    assert alter(core, entry(entity, **values)) == [(key(entity), 0, None)]
    assert described(core) == {key(entity): values}


def test_a_value_that_is_refused_keeps_its_entitys_others_from_being_set(core):
    assert refusal(core, entry(named(user="u"), **{PRODUCE: 1.0, CONSUME: -1.0}))[0] == INVALID
    assert described(core) == {}


def test_what_is_removed_may_have_any_key(core):
    assert refusal(core, entry(named(user="u"), no_such_key=None)) == (0, None)


def test_of_an_entity_that_is_named_twice_the_first_alteration_holds_and_it_is_told_as_an_error(core):
    alice = named(user="alice")
    told = "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"
    assert refusal(core, entry(alice, **{PRODUCE: 1.0}), entry(alice, **{PRODUCE: 2.0})) == (INVALID, told)
    assert described(core) == {key(alice): {PRODUCE: 1.0}}


def test_a_key_that_is_named_twice_is_an_error(core):
    twice = entry(named(user="alice"), **{PRODUCE: 1.0})
    told = "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"
    assert refusal(core, twice._replace(ops=[*twice.ops, *twice.ops])) == (INVALID, told)
    assert described(core) == {}


def test_more_records_than_kafka_takes_at_once_are_refused_all_of_them(core):
    answers = alter(core, *(entry(named(user=f"u{number}"), **{PRODUCE: 1.0}) for number in range(10_001)))
    assert {code for _, code, _ in answers} == {ErrorCode.POLICY_VIOLATION}
    assert described(core) == {}


@pytest.mark.parametrize(("host", "is_known"), [("localhost", True), ("no-such-host.invalid", False)])
async def test_an_address_may_be_told_by_a_host(core, host, is_known):
    request = AlterClientQuotasRequest(entries=[entry(named(ip=host), **{CONNECTIONS: 3.0})])
    context = RequestContext(ApiKey.ALTER_CLIENT_QUOTAS, 1, 7, "client", Session("PLAINTEXT", ("127.0.0.1", 1)))
    answered = asyncio.get_running_loop().create_future()
    core.dispatcher.call(context, request).when_done(answered.set_result)
    (result,) = (await answered).entries
    if is_known:
        assert (result.error_code, described(core)) == (0, {key(named(ip=host)): {CONNECTIONS: 3.0}})
    else:
        assert (result.error_code, result.error_message) == (INVALID, f"{host} is not a valid IP or resolvable host.")


def test_a_users_credentials_and_quotas_do_not_know_of_each_other(core):
    from .test_alter_user_scram_credentials import alter as alter_credentials
    from .test_alter_user_scram_credentials import deletion, known, upsertion

    alter_credentials(core, upsertion("alice"))
    alter(core, entry(named(user="alice"), **{PRODUCE: 1.0}))
    alter_credentials(core, deletion("alice"))
    assert (known(core), described(core)) == ({}, {key(named(user="alice")): {PRODUCE: 1.0}})
