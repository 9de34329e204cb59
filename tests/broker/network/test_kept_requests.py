"""A request that has begun does not refer to its frame, which may be a view of a buffer that is read into again.

Produce is the exception: its records stay a view, and its handler takes what it keeps.
"""

import random

from odradek.broker.api import SERVED
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import request_decoder
from tests.cases import each_case
from tests.kio_schemas import load
from tests.protocol.random_messages import random_message
from tests.protocol.test_requests import encode


def parts(value):
    """Everything in a message, with the types of what is not a message."""
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [parts(each) for each in value]
    names = getattr(value, "_fields", None) or getattr(type(value), "__slots__", ())
    if names and type(value).__module__.startswith("odradek"):
        return {name: parts(getattr(value, name, None)) for name in names}
    return type(value), value


@each_case("api_key", [api_key for api_key in SERVED if api_key != ApiKey.PRODUCE])
def test_a_request_outlives_its_frame(api_key):
    rng = random.Random(f"kept-{api_key}")
    for version in range(SERVED[api_key].min_version, SERVED[api_key].max_version + 1):
        frame = bytearray(encode(random_message(load(api_key, version, "request"), rng)))
        expected = parts(request_decoder(api_key, version)(bytes(frame), 0))
        request = request_decoder(api_key, version)(memoryview(frame), 0)
        frame[:] = bytes(len(frame))
        assert parts(request) == expected
