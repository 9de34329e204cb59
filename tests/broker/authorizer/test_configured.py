"""What the configuration may say of the authorizer."""

import pytest

from odradek.broker.authorizer.acls import AclOperation, AclResourceType
from odradek.broker.authorizer.configured import authorization
from odradek.broker.config import InvalidConfig, load
from odradek.timing.clock import VirtualClock

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
