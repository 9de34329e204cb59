"""The controller as used by a broker in the same process: the same image and log, and requests without a socket.

The broker registers and sends heartbeats like any other. Requests go to the handler without being encoded, except forwarded ones.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from odradek.broker.api.controller import SERVED
from odradek.client.api import ClientError
from odradek.common.context import OwnSession, Reply, RequestContext
from odradek.controller.quorum.controller_channel import AnswerT, ControllerUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.cluster.metadata_source import ControllerLink
    from odradek.broker.start.controller_node import ControllerNode
    from odradek.client.api import Api, RequestT
    from odradek.controller.metadata.cluster_metadata import MetadataPublisher, PublishingOrder
    from odradek.controller.metadata.image import MetadataImage

_HERE: Final = ("127.0.0.1", 0)


class OwnController:
    """The MetadataSource of a broker in the controller's process. Loop thread only."""

    def __init__(self, node: ControllerNode) -> None:
        self.node = node
        self.image: MetadataImage = node.controller.image
        self.link: ControllerLink = OwnLink(node)

    @property
    def applied_offset(self) -> int:
        """The log's end. A large change in progress is not in the image yet."""
        return self.node.controller.log_end_offset

    @property
    def kraft_version(self) -> int:
        """The finalized ``kraft.version``."""
        return self.node.controller.kraft_version

    def subscribe(self, publisher: MetadataPublisher, order: PublishingOrder) -> None:
        """Call ``publisher`` after each change of the image."""
        self.node.controller.subscribe(publisher, order)

    async def run(self, on_caught_up: Callable[[], object]) -> None:
        """Call back at once, since image and log are the controller's own. Then wait to be cancelled."""
        on_caught_up()
        await asyncio.get_running_loop().create_future()

    def close(self, *, now_ms: int) -> None:  # noqa: ARG002  the controller knows the time
        """Close the controller."""
        self.node.close()


class OwnLink:
    """The ControllerLink of a broker in the controller's process."""

    def __init__(self, node: ControllerNode) -> None:
        self._node = node
        self._is_closed = False

    async def request(self, api: Api[RequestT, AnswerT], request: RequestT, timeout_ms: float) -> AnswerT:
        """Return the controller's response. Raises ControllerUnavailable, ClientError."""
        if self._is_closed:
            raise ControllerUnavailable(f"{api.key.name}: the controller is stopping")
        context = RequestContext(api.key, SERVED[api.key].max_version, 0, None, OwnSession("", _HERE))
        outcome = self._node.dispatcher.call(context, request)
        if isinstance(outcome, Reply):
            outcome = await _response(outcome, timeout_ms / 1000, api.key.name)
        if isinstance(outcome, Exception):
            raise ClientError(f"{api.key.name}: {outcome}")
        answer: AnswerT = outcome
        return answer

    def close(self) -> None:
        """Refuse further requests."""
        self._is_closed = True


async def _response(reply: Reply[object], timeout_s: float, name: str) -> object:
    answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    reply.when_done(lambda response: None if answered.done() else answered.set_result(response))
    try:
        return await asyncio.wait_for(answered, timeout_s)
    except TimeoutError as error:
        raise ControllerUnavailable(f"{name}: the controller does not answer") from error
