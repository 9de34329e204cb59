"""Ranges of addresses; the expectations are those of Kafka 4.4's CidrUtils."""

import pytest

from odradek.common.address_ranges import InvalidRange, is_in_range, parsed_range
from tests.cases import each_case


@each_case(
    ("pattern", "inside", "outside"),
    [
        ("10.1.0.0/16", ["10.1.0.0", "10.1.255.255"], ["10.2.0.0", "10.0.255.255", "::ffff:10.1.0.1", "host"]),
        ("10.1.2.3/16", ["10.1.0.0"], ["10.2.2.3"]),
        ("192.168.1.7/32", ["192.168.1.7"], ["192.168.1.6", "192.168.1.8"]),
        ("192.168.1.8/31", ["192.168.1.8", "192.168.1.9"], ["192.168.1.7", "192.168.1.10"]),
        ("0.0.0.0/0", ["0.0.0.1", "255.255.255.255"], ["0.0.0.0", "::1"]),
        ("010.1.0.0/16", ["10.1.0.1"], ["8.1.0.1"]),
        ("2001:db8::/32", ["2001:db8:0:0:0:0:0:1"], ["2001:db9:0:0:0:0:0:0", "10.1.0.1"]),
        ("::1/128", ["0:0:0:0:0:0:0:1"], ["0:0:0:0:0:0:0:2"]),
        ("::/0", ["fe80:0:0:0:0:0:0:1"], ["10.1.0.1"]),
    ],
)
def test_an_address_is_in_a_range_or_not(pattern, inside, outside):
    assert [host for host in (*inside, *outside) if is_in_range(host, pattern)] == inside


@each_case(
    "pattern",
    [
        *("10.1.0.0/", "10.1.0.0/33", "10.1.0.0/016", "10.1.0.0/+8", "10.1.0.0/255.255.0.0", "10.1.0/16", "10.1.0.256/8"),
        *("2001:db8::/129", "2001:db8::/-1", "2001:db8::/x", "2001::db8::/32", "::ffff:10.0.0.1/96", "/", "host/8"),
    ],
)
def test_a_text_that_is_no_range_is_refused_and_has_no_address(pattern):
    with pytest.raises(InvalidRange):
        parsed_range(pattern)
    assert not is_in_range("10.1.0.0", pattern)


def test_a_host_that_is_no_range_has_no_other_address():
    assert not is_in_range("10.1.0.0", "10.1.0.0")
