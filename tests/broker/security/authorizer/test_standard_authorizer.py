from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.security.acl.access import DEFAULT_DENY, SUPER_USER, StandardAuthorizer, acl_host, authorization
from odradek.common.acls import (
    ANYONE,
    WILDCARD,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    kafkas_name,
)
from odradek.common.config import InvalidConfig, load
from odradek.timing.clock import VirtualClock
from tests.broker.security.authorizer import naive
from tests.broker.security.authorizer.naive import binding
from tests.cases import each_case

NAMES = st.text("ab", max_size=3)
PRINCIPALS = st.sampled_from(["User:a", "User:b", "Group:a"])
HOSTS = st.sampled_from(["127.0.0.1", "10.0.0.1"])
TYPES = st.sampled_from([AclResourceType.TOPIC, AclResourceType.GROUP])
OPERATIONS = st.sampled_from([each for each in AclOperation if each > AclOperation.ALL])
BINDINGS = st.builds(
    AclBinding,
    TYPES,
    st.sampled_from([WILDCARD, "a", "b", "ab", "aba", "hard"]),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    PRINCIPALS | st.just(ANYONE),
    HOSTS | st.just(WILDCARD),
    OPERATIONS | st.just(AclOperation.ALL),
    st.sampled_from([AclPermission.ALLOW, AclPermission.DENY]),
)
SETS = st.lists(BINDINGS, max_size=12, unique=True)
SUPER_USERS = st.frozensets(PRINCIPALS, max_size=1)


def authorizer(bindings, super_users=(), allows_without_acls=False):
    made = StandardAuthorizer(super_users, allows_without_acls=allows_without_acls)
    for number, each in enumerate(bindings):
        made.acls.add(UUID(int=number), each)
    return made


@given(SETS, SUPER_USERS, st.booleans(), st.tuples(PRINCIPALS, HOSTS, OPERATIONS, TYPES, NAMES))
def test_it_decides_as_one_that_looks_at_every_binding(bindings, super_users, without_acls, action):
    verdict = authorizer(bindings, super_users, without_acls).authorize(*action)
    assert verdict.is_allowed is naive.authorize(bindings, super_users, without_acls, *action)


@given(SETS, SUPER_USERS, st.booleans(), st.tuples(PRINCIPALS, HOSTS, OPERATIONS, TYPES))
def test_it_decides_on_any_resource_of_a_type_as_one_that_looks_at_every_binding(bindings, super_users, without_acls, action):
    decided = authorizer(bindings, super_users, without_acls).authorize_by_resource_type(*action)
    assert decided is naive.authorize_by_type(bindings, super_users, without_acls, *action)


@given(SETS, SETS, st.tuples(PRINCIPALS, HOSTS, OPERATIONS, TYPES, NAMES))
def test_bindings_that_were_removed_decide_nothing(kept, removed, action):
    made = authorizer(kept + removed)
    for number in range(len(kept), len(kept) + len(removed)):
        made.acls.remove(UUID(int=number))
    assert made.authorize(*action) == authorizer(kept).authorize(*action)
    assert len(made.acls) == len(kept)


@given(BINDINGS, st.sampled_from(["a", "abab", "b", WILDCARD]))
def test_a_filter_by_match_selects_what_applies_to_a_name(each, name):
    wanted = AclFilter(each.resource_type, name, PatternType.MATCH)
    assert wanted.matches(each) is naive.names(each, each.resource_type, name)


@each_case(
    ("pattern_type", "name", "selected"),
    [
        (PatternType.ANY, "ab", {"ab", "ab*"}),
        (PatternType.LITERAL, "ab", {"ab"}),
        (PatternType.PREFIXED, "ab", {"ab*"}),
        (PatternType.MATCH, "abc", {"*", "ab*", "a*"}),
        (PatternType.MATCH, None, {"ab", "ab*", "a*", "*"}),
        (PatternType.LITERAL, "*", {"*"}),
    ],
)
def test_a_filter_selects_by_pattern(pattern_type, name, selected):
    all_of_them = {text: binding(f"allow User:a READ TOPIC {text}") for text in ("ab", "ab*", "a*", "*")}
    wanted = AclFilter(AclResourceType.TOPIC, name, pattern_type)
    assert {text for text, each in all_of_them.items() if wanted.matches(each)} == selected


def test_the_rule_is_told_by_which_it_was_decided():
    denied = binding("deny User:a WRITE TOPIC t*")
    made = authorizer([denied, binding("allow User:* ALL TOPIC *")], ["User:admin"])

    def rule(principal, operation):
        return made.authorize(principal, "127.0.0.1", operation, AclResourceType.TOPIC, "tt").rule

    assert rule("User:a", AclOperation.WRITE) == denied
    assert rule("User:admin", AclOperation.WRITE) == SUPER_USER
    assert authorizer([]).authorize("User:a", "h", AclOperation.READ, AclResourceType.TOPIC, "t").rule == DEFAULT_DENY


def test_ten_thousand_bindings_of_other_names_are_not_looked_at():
    looked_at = []

    class Watched(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            looked_at.append(self)
            return str.__eq__(self, other)

    others = [binding(f"allow User:a READ TOPIC t{number}")._replace(host=Watched("1.1.1.1")) for number in range(10_000)]
    made = authorizer([*others, binding("allow User:a READ TOPIC wanted")])
    assert made.authorize("User:a", "1.1.1.1", AclOperation.READ, AclResourceType.TOPIC, "wanted").is_allowed
    assert looked_at == []
    assert made.authorize("User:a", "1.1.1.1", AclOperation.READ, AclResourceType.TOPIC, "t77").is_allowed
    assert set(map(id, looked_at)) == {id(others[77].host)}


@each_case(
    ("peer", "host"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("fe80::a1%eth0", "fe80:0:0:0:0:0:0:a1%eth0"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("", ""),
    ],
)
def test_hosts_are_written_as_java_prints_them(peer, host):
    assert acl_host(peer) == host


def test_names_are_kafkas():
    assert kafkas_name(AclResourceType.TRANSACTIONAL_ID) == "TransactionalId"
    assert kafkas_name(AclOperation.READ) == "Read"


# The authorizer's configs.
FULL = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def configured(**settings):
    found = authorization(load(None, {name.replace("_", "."): value for name, value in settings.items()}), VirtualClock())
    return None if found is None else found.authorizer


@pytest.mark.parametrize("settings", [{}, {"authorizer_class_name": ""}, {"super_users": "User:a"}])
def test_there_is_none_unless_one_is_named(settings):
    assert configured(**settings) is None


@pytest.mark.parametrize("name", [FULL, "StandardAuthorizer"])
def test_the_one_there_is_goes_by_two_names(name):
    found = configured(authorizer_class_name=name, super_users=" User:a ; User:b:c;")
    decided = {
        who: found.authorize(who, "h", AclOperation.READ, AclResourceType.TOPIC, "t").is_allowed
        for who in ("User:a", "User:b:c", "User:b")
    }
    assert decided == {"User:a": True, "User:b:c": True, "User:b": False}


def test_everybody_may_if_there_are_no_acls_and_that_is_configured():
    found = configured(authorizer_class_name=FULL, allow_everyone_if_no_acl_found="true")
    assert found.authorize("User:a", "h", AclOperation.READ, AclResourceType.TOPIC, "t").is_allowed


@pytest.mark.parametrize(
    ("name", "value", "invalid", "allowed"),
    [
        ("authorizer.class.name", "com.example.Mine", "com.example.Mine", f"{FULL}, StandardAuthorizer, or empty for none"),
        ("super.users", "User:a;admin", "admin", "principals as User:alice, separated by semicolons"),
        ("allow.everyone.if.no.acl.found", "yes", "yes", "true or false"),
    ],
)
def test_anything_else_ends_the_start(name, value, invalid, allowed):
    with pytest.raises(InvalidConfig) as raised:
        load(None, {name: value})
    assert (raised.value.key, raised.value.value, raised.value.allowed) == (name, invalid, allowed)
