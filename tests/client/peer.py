"""A node of Kafka as bytes: it takes a client's bytes, and gives the answers to those of its requests that are whole."""

from odradek.protocol.api_keys import NEWEST_VERSION, OLDEST_VERSION, ApiKey
from odradek.protocol.broker_codecs import request_decoder, response_encoder
from odradek.protocol.frames import FrameReader, read_request_header
from odradek.protocol.messages import messages

UNSUPPORTED_VERSION = 35
EVERY_VERSION = {key: (OLDEST_VERSION.get(key, 0), NEWEST_VERSION[key]) for key in ApiKey}


def nothing(api_key, version, request):
    """A response with its defaults."""
    return messages(api_key).response()


class Peer:
    """``answer(api_key, version, request)`` makes a response, or None where nothing is to be said.

    ``says_what_it_knows``: whether ApiVersions in a version too new is answered with those that are known (KIP-511).
    """

    def __init__(self, answer=nothing, served=EVERY_VERSION, *, says_what_it_knows=True):
        self._answer = answer
        self._served = served
        self._says_what_it_knows = says_what_it_knows
        self._frames = FrameReader(1 << 24)
        self.asked = []

    def receive(self, data):
        """The answers' bytes."""
        return b"".join(map(self._respond, self._frames.feed(data)))

    def _respond(self, frame):
        api_key, version, correlation_id, client_id, position = read_request_header(frame)
        if api_key == ApiKey.API_VERSIONS:
            self.asked.append((ApiKey(api_key), version, client_id))
            return self._versions(version, correlation_id)
        request = request_decoder(ApiKey(api_key), version)(frame, position)
        self.asked.append((ApiKey(api_key), version, client_id))
        response = self._answer(ApiKey(api_key), version, request)
        return b"" if response is None else encoded(ApiKey(api_key), version, correlation_id, response)

    def _versions(self, version, correlation_id):
        api = messages(ApiKey.API_VERSIONS)
        lowest, highest = self._served[ApiKey.API_VERSIONS]
        if version > highest:
            known = [api.ApiVersion(api_key=18, min_version=lowest, max_version=highest)] if self._says_what_it_knows else []
            response = api.ApiVersionsResponse(error_code=UNSUPPORTED_VERSION, api_keys=known)
            return encoded(ApiKey.API_VERSIONS, 0, correlation_id, response)
        ranges = [api.ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in self._served.items()]
        return encoded(ApiKey.API_VERSIONS, version, correlation_id, api.ApiVersionsResponse(api_keys=ranges))


def encoded(api_key, version, correlation_id, response):
    """A response's frame, length included."""
    return b"".join(map(bytes, response_encoder(api_key, version)(correlation_id, response)))
