"""What the tests of the APIs of delegation tokens ask, and of whom."""

from odradek.broker.api import SERVED
from odradek.common.context import RequestContext, Session
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.errors import ErrorCode
from odradek.protocol.message_types.create_delegation_token import CreatableRenewers
from odradek.protocol.messages import messages
from odradek.timing.reply import Reply
from tests.broker.api.bed import make_broker

ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
KEY = "the key of these tests"
# Kafka's defaults.
EXPIRY_MS, LIFETIME_MS = 86_400_000, 604_800_000


def token_broker(**overrides):
    return make_broker(**{"delegation_token_secret_key": KEY} | overrides)


def ask(broker, api_key, principal=ALICE, *, listener="SASL_PLAINTEXT", by_token=False, version=None, **fields):
    """The answer, which can be said in every version that is served."""
    session = Session(listener, ("127.0.0.1", 1), principal)
    session.token_authenticated = by_token
    served = SERVED[api_key]
    version = served.max_version if version is None else version
    response = broker.dispatcher.call(RequestContext(api_key, version, 7, "c", session), messages(api_key).request(**fields))
    if isinstance(response, Reply):
        assert response.done
        response = response.response
    for each in range(served.min_version, served.max_version + 1):
        assert response_encoder(api_key, each)(7, response)
    return response


def create(broker, principal=ALICE, *, renewers=(), lifetime_ms=-1, **more):
    people = [CreatableRenewers(*name.split(":")) for name in renewers]
    return ask(broker, ApiKey.CREATE_DELEGATION_TOKEN, principal, renewers=people, max_lifetime_ms=lifetime_ms, **more)


def token_of(broker, **more):
    made = create(broker, **more)
    assert made.error_code == ErrorCode.NONE
    return made


def renew(broker, hmac, principal=ALICE, *, period_ms=-1, **more):
    """(code, when the token expires)."""
    answer = ask(broker, ApiKey.RENEW_DELEGATION_TOKEN, principal, hmac=hmac, renew_period_ms=period_ms, **more)
    return answer.error_code, answer.expiry_timestamp_ms


def expire(broker, hmac, principal=ALICE, *, period_ms=-1, **more):
    """(code, when the token expires)."""
    answer = ask(broker, ApiKey.EXPIRE_DELEGATION_TOKEN, principal, hmac=hmac, expiry_time_period_ms=period_ms, **more)
    return answer.error_code, answer.expiry_timestamp_ms


def tokens(broker):
    """The tokens in the metadata, by id."""
    return broker.controller.image.kept.delegation_tokens
