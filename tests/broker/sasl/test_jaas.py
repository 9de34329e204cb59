import pytest

from odradek.broker.sasl.jaas import JaasError, parse_jaas
from tests.cases import each_case

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@each_case(
    ("line", "options"),
    [
        (f"{PLAIN} required;", {}),
        (f"  {PLAIN}\n REQUIRED ;  ", {}),
        (f'{PLAIN} required user_alice="alice-secret";', {"user_alice": "alice-secret"}),
        (f"{PLAIN} required user_alice=alice-secret user_bob = 'b o b';", {"user_alice": "alice-secret", "user_bob": "b o b"}),
        (f'{PLAIN} sufficient user_alice="a\\"b\\\\c;=d";', {"user_alice": 'a"b\\c;=d'}),
        (f'{PLAIN} required user_alice="";', {"user_alice": ""}),
        (f'{PLAIN} required a="\\101\\n"; // the end', {"a": "A\n"}),
        (f"{PLAIN} /* a\ncomment */ required a=b;", {"a": "b"}),
        (f'{PLAIN} required "user_a b"="c";', {"user_a b": "c"}),
        (f"{PLAIN} required user_ä=ö;", {"user_ä": "ö"}),
        (f"{PLAIN} required a=b a=c;", {"a": "c"}),
    ],
)
def test_a_line_is_read_as_kafka_reads_it(line, options):
    assert parse_jaas(line) == (PLAIN, options)


@each_case(
    ("line", "complaint"),
    [
        ("", "empty"),
        ("// nothing", "empty"),
        ("= required;", "does not begin"),
        (f"{PLAIN};", "not followed by one of required"),
        (f"{PLAIN} demanded;", "not followed by one of required"),
        (f"{PLAIN} required a=b", "does not end with a semicolon"),
        (f"{PLAIN} required a;", "option 1 is not of the form"),
        (f"{PLAIN} required a=b c=;", "option 2 is not of the form"),
        (f"{PLAIN} required =b;", "option 1 is not of the form"),
        (f"{PLAIN} required; {PLAIN} required;", "more than one login module"),
        (f'{PLAIN} required a="b;', "quotes"),
        (f"{PLAIN} required a=b@c;", "quotes"),
    ],
)
def test_what_is_wrong_with_a_line_is_told_without_what_stands_in_it(line, complaint):
    with pytest.raises(JaasError, match=complaint) as caught:
        parse_jaas(line)
    assert "b@c" not in str(caught.value)


def test_options_are_secrets():
    assert "hush" not in repr(parse_jaas(f"{PLAIN} required user_alice=hush;"))
