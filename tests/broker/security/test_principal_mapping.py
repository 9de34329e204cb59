"""``ssl.principal.mapping.rules``, with the examples of Kafka's documentation (KIP-371) among them."""

import pytest

from odradek.broker.security.principal_mapping import NoMatchingRule, PrincipalMapper
from tests.cases import each_case

DUKE = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
ADMIN = "CN=Admin@Sub,OU=Admins,O=Org"


@each_case(
    ("rules", "name", "mapped"),
    [
        ("DEFAULT", DUKE, DUKE),
        (" DEFAULT ,", DUKE, DUKE),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", DUKE, "Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", DUKE, "duke"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/U", DUKE, "DUKE@SERVICEUSERS"),
        ("RULE:^cn=none$/x/,RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1/,DEFAULT", ADMIN, "Admin@Sub"),
        ("RULE:^(OU)=no.*$/$1x/, DEFAULT", DUKE, DUKE),
        # A comma within a rule, and slashes in both halves.
        (r"RULE:CN=(\w+),OU=a\/b/$1\/x/", "CN=u,OU=a/b", "u/x"),
        # Named groups as Java has them, a group that does not take part, and a literal dollar.
        (r"RULE:CN=(?<who>\w+)(,OU=x)?.*/${who}$2/L", DUKE, "duke"),
        (r"RULE:CN=(\w+).*/\$1/", DUKE, "$1"),
        # Of a number too large, the digits that make a group's; and a number without a group as it is.
        ("RULE:CN=(.)(.*)/$12/", "CN=ab", "a2"),
        ("RULE:CN=(.*)/$1@$4/", "CN=ab", "ab@$4"),
        ("RULE:CN=(.*)/$0/", "CN=ab", "CN=ab"),
        # The whole of a name has to match, and all that matches is replaced, as by Java's replaceAll.
        ("RULE:CN=/x/,DEFAULT", DUKE, DUKE),
        ("RULE:.*/x/", DUKE, "xx"),
    ],
)
def test_the_first_rule_that_matches_gives_the_name(rules, name, mapped):
    assert PrincipalMapper(rules).name(name) == mapped


@pytest.mark.parametrize("rules", ["", " , ", "RULE:^CN=none$/x/"])
def test_a_name_without_a_rule_has_no_principal(rules):
    with pytest.raises(NoMatchingRule, match="Duke"):
        PrincipalMapper(rules).name(DUKE)


@each_case(
    "rules",
    [
        "default",
        "DEFAULTS",
        "DEFAULT DEFAULT",
        "RULE:",
        "RULE:a",
        "RULE:a/b",
        "RULE:a/b/X",
        "RULE:a/b/LL",
        "RULE:(/b/",
        "RULE:a/$1/",
        "RULE:(a)/${who}/",
    ],
)
def test_rules_that_cannot_be_read_are_refused(rules):
    with pytest.raises(ValueError):
        PrincipalMapper(rules)
