import pytest

from odradek.controller.metadata.topic import validate_topic_name
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.cases import each_case


@each_case("name", ["a", "A.b_c-9", "...", "_", "__consumer_offsets", "x" * 249])
def test_a_legal_name_passes(name):
    validate_topic_name(name)


@each_case("name", ["", ".", "..", "x" * 250, "a b", "a/b", "é", "a\n", "a:b", "\u0660"])
def test_an_illegal_name_is_refused(name):
    with pytest.raises(KafkaError) as caught:
        validate_topic_name(name)
    assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION
