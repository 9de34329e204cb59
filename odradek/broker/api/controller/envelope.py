"""Envelope, version 0: a client's request that a broker has forwarded (KIP-590).

The request is answered as if the client had sent it here, with the client's principal and address. UNSUPPORTED_VERSION if the
request cannot be read or is not served; INVALID_REQUEST if brokers do not forward the API, or the address is invalid;
PRINCIPAL_DESERIALIZATION_FAILURE if the principal cannot be read.
"""

from ipaddress import ip_address
from struct import Struct, error
from typing import TYPE_CHECKING, Final

from odradek.broker.security.acl.rules import on_cluster
from odradek.common.acls import AclOperation
from odradek.common.context import ForwardedSession
from odradek.protocol.api_keys import FORWARDABLE, ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.message_types.envelope import EnvelopeRequest, EnvelopeResponse
from odradek.protocol.varint import read_uvarint

if TYPE_CHECKING:
    from odradek.common.context import RequestContext
    from odradek.controller.cluster.cluster_controller import EnvelopeServices
    from odradek.timing.reply import Reply

_API_KEY: Final = Struct(">h")
_VERSION_BYTES: Final = 2


def handle(
    services: "EnvelopeServices", context: "RequestContext", request: EnvelopeRequest
) -> "EnvelopeResponse | Reply[EnvelopeResponse]":
    """Answer the request in the envelope."""
    try:
        principal, token_authenticated = _principal(request.request_principal or b"")
        host = _host(request.client_host_address)
        _ensure_forwardable(request.request_data)
    except KafkaError as refusal:
        return EnvelopeResponse(error_code=refusal.code)
    session = ForwardedSession(context.listener_name, (host, 0), principal)
    session.token_authenticated = token_authenticated
    return services.answer(request.request_data, session).then(_wrapped)


def _wrapped(outcome: bytes | KafkaError) -> EnvelopeResponse:
    if isinstance(outcome, KafkaError):
        return EnvelopeResponse(error_code=outcome.code)
    return EnvelopeResponse(response_data=outcome)


def _ensure_forwardable(frame: bytes) -> None:
    try:
        (key,) = _API_KEY.unpack_from(frame)
        is_forwardable = ApiKey(key) in FORWARDABLE
    except (error, ValueError) as problem:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION) from problem
    if not is_forwardable:
        raise KafkaError(ErrorCode.INVALID_REQUEST)


def _principal(data: bytes) -> tuple[str, bool]:
    """Return ``TYPE:NAME`` and whether a token authenticated it, from the form of Kafka's DefaultKafkaPrincipalBuilder."""
    try:
        kind, position = _compact(data, _VERSION_BYTES)
        name, position = _compact(data, position)
    except (MalformedMessage, UnicodeDecodeError) as problem:
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE) from problem
    return f"{kind}:{name}", data[position : position + 1] == b"\1"


def _compact(data: bytes, position: int) -> tuple[str, int]:
    length, position = read_uvarint(data, position)
    end = position + length - 1
    if not position <= end <= len(data):
        raise MalformedMessage("the principal ends early")
    return data[position:end].decode(), end


def _host(address: bytes) -> str:
    try:
        return str(ip_address(address))
    except ValueError as problem:
        raise KafkaError(ErrorCode.INVALID_REQUEST) from problem


rule = on_cluster(AclOperation.CLUSTER_ACTION)
