"""Requests of a broker to the active controller: forwarded ones in Envelopes (KIP-590), and for producer ids (KIP-730).

    Envelope     the client's request, header included | its principal | its address, 4 or 16 bytes
    principal    int16 version 0 | type, name: compact strings | token authenticated: bool | tagged fields

``ForwardingGate`` stands in front of the handlers. Requests of a ``FORWARDABLE`` API do not reach them, except requests for
delegation tokens that the broker itself must refuse (``token_logins``). The controller answers in the client's version. If no
controller answers within a minute, the answer is REQUEST_TIMED_OUT. It is then unknown whether the request was carried out, just
as for a client of Kafka. Kafka's class is ForwardingManagerImpl.

``ProducerIdBlocks`` gets blocks of producer ids (AllocateProducerIds) for ``cluster_metadata.ProducerIdManager``.
"""

from collections.abc import Callable
from ipaddress import ip_address
from struct import Struct
from typing import Any, Final

from odradek.client.api import Api, ClientError, RequestT, UnsupportedVersion
from odradek.common.context import RequestContext
from odradek.controller.quorum.broker_lifecycle import Controller
from odradek.controller.quorum.controller_channel import AnswerT, ControllerUnavailable
from odradek.protocol.api_keys import FORWARDABLE, ApiKey
from odradek.protocol.client_codecs import request_encoder, response_decoder
from odradek.protocol.error_answers import error_answer
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.message_types.envelope import EnvelopeRequest, EnvelopeResponse
from odradek.protocol.varint import uvarint
from odradek.timing.driver import OwnTasks
from odradek.timing.reply import Reply

_ENVELOPE: Final[Api[EnvelopeRequest, EnvelopeResponse]] = Api(ApiKey.ENVELOPE)
_TIMEOUT_MS: Final = 60_000
_LENGTH_BYTES: Final = 4
_PRINCIPAL_VERSION: Final = Struct(">h").pack(0)


class ForwardingGate:
    """A Gate that returns the controller's responses, except for requests that are ``refused_here``. Loop thread only."""

    def __init__(self, controller: Controller, refused_here: Callable[[RequestContext], bool] | None = None) -> None:
        self._controller = controller
        self._refused_here = refused_here
        self._tasks = OwnTasks()

    def admit(self, context: RequestContext, request: object) -> object:
        """Forward requests that only the controller can decide; admit all others."""
        if context.api_key not in FORWARDABLE or (self._refused_here is not None and self._refused_here(context)):
            return None
        return self.forward(context, request)

    def release(self, context: RequestContext, response: object) -> object:  # noqa: ARG002
        """Return the response unchanged."""
        return response

    def forward(self, context: RequestContext, request: object) -> Reply[object]:
        """Return the controller's response, or one with the error that prevents it."""
        reply: Reply[object] = Reply()
        self._tasks.start(self._answer(context, request, reply.complete))
        return reply

    def close(self) -> None:
        """Stop answering."""
        self._tasks.cancel()

    async def _answer(self, context: RequestContext, request: object, complete: Callable[[object], None]) -> None:
        try:
            response = await self._ask(context, request)
        except KafkaError as error:
            response = error_answer(context.api_key, request, error.code, error.reason)
        except Exception as error:  # noqa: BLE001  an internal error, which dispatch reports
            response = error
        complete(response)

    async def _ask(self, context: RequestContext, request: object) -> object:
        """Return the controller's response. KafkaError: REQUEST_TIMED_OUT, UNSUPPORTED_VERSION, UNKNOWN_SERVER_ERROR."""
        if context.session.is_own:
            # The controller knows this broker by its connection.
            own: Api[Any, Any] = Api(context.api_key)
            return await self._put(own, request)
        frame = b"".join(request_encoder(context.api_key, context.version)(context.correlation_id, context.client_id, request))
        envelope = EnvelopeRequest(
            request_data=frame[_LENGTH_BYTES:],
            request_principal=serialized_principal(context.session.principal, context.session.token_authenticated),
            client_host_address=_address_bytes(context.peer[0]),
        )
        response = await self._put(_ENVELOPE, envelope)
        if response.error_code or response.response_data is None:
            is_told = response.error_code == ErrorCode.UNSUPPORTED_VERSION
            code = ErrorCode.UNSUPPORTED_VERSION if is_told else ErrorCode.UNKNOWN_SERVER_ERROR
            raise KafkaError(code, f"the controller answered the envelope with error {response.error_code}")
        return response_decoder(context.api_key, context.version)(response.response_data)

    async def _put(self, api: Api[RequestT, AnswerT], request: RequestT) -> AnswerT:
        try:
            return await self._controller.request(api, request, _TIMEOUT_MS)
        except ControllerUnavailable as error:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
        except UnsupportedVersion as error:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error
        except ClientError as error:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error


def serialized_principal(principal: str, token_authenticated: bool = False) -> bytes:
    """Return ``TYPE:NAME`` as serialized by Kafka's DefaultKafkaPrincipalBuilder."""
    kind, _, name = principal.partition(":")
    return _PRINCIPAL_VERSION + _compact(kind) + _compact(name) + bytes((token_authenticated, 0))


def _compact(text: str) -> bytes:
    data = text.encode()
    return uvarint(len(data) + 1) + data


def _address_bytes(host: str) -> bytes:
    """Return a peer's address as bytes, without the scope of an IPv6 link-local address."""
    return ip_address(host.partition("%")[0]).packed


_ALLOCATE: Final[Api[AllocateProducerIdsRequest, AllocateProducerIdsResponse]] = Api(ApiKey.ALLOCATE_PRODUCER_IDS)


class ProducerIdBlocks:
    """Requests blocks of producer ids for the broker, as registered at that time. Loop thread only."""

    def __init__(self, controller: Controller, node_id: int, broker_epoch: Callable[[], int]) -> None:
        self._controller = controller
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._tasks = OwnTasks()

    def request(self) -> Reply[range | KafkaError]:
        """Return a new block, or KafkaError(COORDINATOR_LOAD_IN_PROGRESS) if the controller gives none.

        On that code, clients retry.
        """
        reply: Reply[range | KafkaError] = Reply()
        self._tasks.start(self._request(reply))
        return reply

    def close(self) -> None:
        """Stop asking."""
        self._tasks.cancel()

    async def _request(self, reply: Reply[range | KafkaError]) -> None:
        request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch())
        try:
            response = await self._controller.request(_ALLOCATE, request, _TIMEOUT_MS)
        except (ControllerUnavailable, ClientError) as error:
            reply.complete(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"no block of producer ids: {error}"))
            return
        if response.error_code:
            reason = f"the controller refused a block of producer ids: error {response.error_code}"
            reply.complete(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, reason))
            return
        start = response.producer_id_start
        reply.complete(range(start, start + response.producer_id_len))
