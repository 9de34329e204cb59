"""The controller, as the handlers of its APIs see it. Interfaces only; ``start.controller_node`` has all attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from odradek.common.context import Session
    from odradek.controller.cluster.cluster_controller import ClusterController
    from odradek.controller.cluster.controller import Controller
    from odradek.controller.cluster.quorum_leader import QuorumLeader
    from odradek.protocol.errors import KafkaError
    from odradek.timing.clock import Clock
    from odradek.timing.reply import Reply


class DecisionServices(Protocol):
    """The controller of a single broker or of a cluster."""

    @property
    def controller(self) -> Controller:
        """Return the controller, with the image of the committed metadata."""


class BrokerServices(Protocol):
    """The controller of a cluster."""

    @property
    def controller(self) -> ClusterController:
        """Return the controller that brokers register with."""


class QuorumServices(BrokerServices, Protocol):
    """The leader of the quorum, which serves observers."""

    @property
    def leader(self) -> QuorumLeader:
        """Return this node as the quorum's leader."""

    @property
    def clock(self) -> Clock:
        """Return the node's clock."""


class EnvelopeServices(Protocol):
    """The service that answers the requests in envelopes."""

    def answer(self, frame: bytes, session: Session) -> Reply[bytes | KafkaError]:
        """Return the response to a request, both with headers. KafkaError: UNSUPPORTED_VERSION, UNKNOWN_SERVER_ERROR."""
