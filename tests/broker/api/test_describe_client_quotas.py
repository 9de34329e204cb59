"""DescribeClientQuotas: what a filter selects, and filters that cannot be."""

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.describe_client_quotas import ComponentData
from tests.broker.api.bed import ask
from tests.broker.api.test_alter_client_quotas import CONNECTIONS, DEFAULT, INVALID, PRODUCE, alter, described, entry, key, named

NOT_WITH = "should not be used with user or clientId"
EXACT, DEFAULT_NAME, SPECIFIED = 0, 1, 2


U, D, UC, UD, DD, C, CD = (
    named(user="u"),
    named(user=DEFAULT),
    named(user="u", client="c"),
    named(user="u", client=DEFAULT),
    named(user=DEFAULT, client=DEFAULT),
    named(client="c"),
    named(client=DEFAULT),
)
ADDRESS = named(ip="10.0.0.1")


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, [U, D, UC, UD, DD, C, CD, ADDRESS]),
        ([], True, []),
        ([("user", EXACT, "u")], False, [U, UC, UD]),
        ([("user", EXACT, "u")], True, [U]),
        ([("user", EXACT, "v")], False, []),
        ([("user", DEFAULT_NAME, None)], False, [D, DD]),
        ([("user", SPECIFIED, None)], False, [U, D, UC, UD, DD]),
        ([("user", SPECIFIED, None)], True, [U, D]),
        ([("user", SPECIFIED, None), ("client-id", DEFAULT_NAME, None)], False, [UD, DD]),
        ([("client-id", EXACT, "c")], False, [UC, C]),
        ([("client-id", SPECIFIED, None)], True, [C, CD]),
        ([("ip", SPECIFIED, None)], True, [ADDRESS]),
        ([("ip", EXACT, "10.0.0.1")], False, [ADDRESS]),
        ([("ip", DEFAULT_NAME, None)], False, []),
    ],
)
def test_a_filter_selects_by_name_by_default_and_by_type(core, components, strict, found):
    alter(core, *(entry(each, **{CONNECTIONS if "ip" in each else PRODUCE: 1.0}) for each in (U, D, UC, UD, DD, C, CD, ADDRESS)))
    assert described(core, *components, strict=strict).keys() == {key(each) for each in found}


@pytest.mark.parametrize(
    ("components", "code", "message"),
    [
        ([("", EXACT, "u")], INVALID, "Invalid empty entity type."),
        ([("group", EXACT, "u")], ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type group"),
        (
            [("user", EXACT, "u"), ("user", SPECIFIED, None)],
            INVALID,
            "Entity type user cannot appear more than once in the filter.",
        ),
        ([("user", EXACT, None)], INVALID, "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        ([("user", DEFAULT_NAME, "u")], INVALID, "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."),
        ([("user", SPECIFIED, "u")], INVALID, "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string."),
        ([("user", 3, None)], INVALID, "Unknown match type 3"),
        (
            [("ip", SPECIFIED, None), ("user", EXACT, "u")],
            INVALID,
            f"Invalid entity filter component combination. IP filter component {NOT_WITH} filter component.",
        ),
    ],
)
def test_a_filter_that_cannot_be_is_refused(core, components, code, message):
    answer = ask(core, ApiKey.DESCRIBE_CLIENT_QUOTAS, components=[ComponentData(*each) for each in components])
    assert (answer.error_code, answer.error_message, answer.entries) == (code, message, None)
