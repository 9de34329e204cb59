"""A whole broker in process with an authorizer, and clients of any principal."""

from contextlib import contextmanager

from odradek.broker.api import SERVED
from odradek.common.context import CLOSE_CONNECTION, RequestContext, Session
from odradek.common.logging import lines_to
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.error_codes_in import compile_error_scan
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import messages
from odradek.protocol.records import Record, build_batch
from odradek.timing.reply import Reply
from tests.broker.api.acl_requests import create as create_acls
from tests.broker.api.acl_requests import secured_broker
from tests.broker.api.share_requests import MemoryStates

ALICE = "User:alice"
# Anybody is told the versions, may say who it is, and push what it is asked for. Who may renew a delegation token or expire it
# stands in the token.
OPEN = frozenset(
    {
        *(ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE),
        *(ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN),
        *(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY),
    }
)
DENIED = {code for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED")}


class Secured:
    """``broker`` with ``topics``; what clients ask it, and what they may do."""

    def __init__(self, *topics, **overrides):
        defaults = {"group_initial_rebalance_delay_ms": "0", "offsets_topic_num_partitions": "1"}
        defaults["transaction_state_log_num_partitions"] = "1"
        defaults["delegation_token_secret_key"] = "a key"
        self.broker = secured_broker(*topics, **defaults | overrides)
        self.broker.share_persister = MemoryStates()

    def ask(self, api_key, version=None, principal=ALICE, peer="127.0.0.1", **fields):
        """The response to a client of this principal; CLOSE_CONNECTION; or the Reply of one that waits."""
        served = SERVED[api_key]
        version = served.max_version if version is None else version
        # Who asks for delegation tokens has authenticated.
        listener = "SASL_PLAINTEXT" if "DELEGATION_TOKEN" in api_key.name else "PLAINTEXT"
        context = RequestContext(api_key, version, 7, "client", Session(listener, (peer, 1), principal))
        response = self.broker.dispatcher.call(context, messages(api_key).request(**fields))
        if isinstance(response, Reply):
            if not response.done:
                return response
            response = response.response
        if response is not CLOSE_CONNECTION:
            assert response_encoder(api_key, version)(7, response)
        return response

    def allow(self, *texts):
        """``READ TOPIC t``: to alice."""
        results = create_acls(self.broker, *(f"allow {ALICE} {text}" for text in texts))
        assert all(code == 0 for code, _ in results), results

    def deny(self, *texts):
        create_acls(self.broker, *(f"deny {ALICE} {text}" for text in texts))

    def topic_id(self, name):
        return self.broker.controller.image.topics[name].topic_id


def codes_in(api_key, response):
    """The error codes in a response, each once."""
    found = set()

    class Tally:
        def note_error(self, code):
            found.add(ErrorCode(code))

    compile_error_scan(api_key)(response, Tally())
    return found


def batch(*, is_transactional=False):
    made = bytearray(build_batch([Record(timestamp=0, value=b"v")]))
    if is_transactional:
        made[22] |= 0x10
    return bytes(made)


@contextmanager
def told_lines():
    """The lines of the broker's log that are told within."""
    lines = []
    with lines_to(lambda level, event, fields: lines.append((event, dict(fields)))):
        yield lines
