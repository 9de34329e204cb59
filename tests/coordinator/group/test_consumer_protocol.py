import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.group.consumer_protocol import subscribed_topics
from odradek.protocol.errors import MalformedMessage


def _subscription(topics, version=1, rest=b""):
    body = b"".join(len(topic.encode()).to_bytes(2) + topic.encode() for topic in topics)
    return version.to_bytes(2) + len(topics).to_bytes(4) + body + rest


@given(st.lists(st.text(max_size=20)), st.integers(0, 3), st.binary(max_size=20))
def test_the_topics_are_read_whatever_follows_them(topics, version, rest):
    assert subscribed_topics(_subscription(topics, version, rest)) == set(topics)


@given(st.binary(max_size=60))
def test_any_bytes_give_topics_or_the_one_error(data):
    try:
        topics = subscribed_topics(data)
    except MalformedMessage:
        return
    assert all(isinstance(topic, str) for topic in topics)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0\0\0",
        b"\xff\xff\0\0\0\0",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\x7f\xff\xff\xff",
        b"\0\0\0\0\0\1",
        b"\0\0\0\0\0\1\0\5abc",
        b"\0\0\0\0\0\1\xff\xff",
        b"\0\0\0\0\0\1\0\1\xff",
    ],
)
def test_what_is_no_subscription_is_refused(data):
    with pytest.raises(MalformedMessage):
        subscribed_topics(data)
