"""A whole broker in process, with quotas, and a client whose connection notes what it is muted for."""

from odradek.common.context import Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from odradek.timing.reply import Reply
from tests.broker.api.bed import make_broker
from tests.raw_client import decode_response, encode_request, fetch_fields, produce_fields

USER = "ANONYMOUS"


def quota(broker, key, value, **names):
    """Set a quota, or remove it where ``value`` is None; ``names`` are those of ``user`` and ``client_id``, None for defaults."""
    entity = [RequestEntityData(kind.replace("_", "-"), name) for kind, name in names.items()]
    op = OpData(key, 0.0 if value is None else value, value is None)
    reply = broker.controller.alter_client_quotas(AlterClientQuotasRequest([RequestEntryData(entity, [op])]))
    assert [entry.error_code for entry in reply.response] == [0]


def told_ms(answer):
    """The throttle time in an answer as kio reads it."""
    return round(answer.throttle_time.total_seconds() * 1_000)


class Client:
    """Sends frames to the dispatcher of a broker, as a connection does."""

    def __init__(self, broker, client_id="client", principal=f"User:{USER}"):
        self.broker = broker
        self.client_id = client_id
        self.session = Session("PLAINTEXT", ("127.0.0.1", 1), principal)
        self.session.connection = self
        self.muted_ms = []

    def mute(self, for_ms):
        self.muted_ms.append(for_ms)

    def send(self, api_key, version, **fields):
        """What dispatch returns."""
        frame = encode_request(api_key, version, 1, self.client_id, **fields)[4:]
        self.sent_bytes = len(frame)
        return self.broker.dispatcher.dispatch(frame, self.session, 0.0)

    def ask(self, api_key, version, **fields):
        chunks = self.send(api_key, version, **fields)
        if isinstance(chunks, Reply):
            assert chunks.done
            chunks = chunks.response
        frame = b"".join(chunk if isinstance(chunk, bytes) else chunk.read() for chunk in chunks)
        return decode_response(api_key, version, frame[4:])[1] if frame else None

    def produce(self, records, acks=-1):
        return self.ask(ApiKey.PRODUCE, 9, **produce_fields("t", records, acks=acks))

    def fetch(self, offset=0, version=12, **fields):
        return self.ask(ApiKey.FETCH, version, **fetch_fields("t", offset, **fields))


def broker_with(*topics, **overrides):
    return make_broker(*topics, **overrides)
