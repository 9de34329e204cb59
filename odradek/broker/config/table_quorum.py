"""The table, the part of a node's role in a cluster and of the quorum that it belongs to."""

from odradek.broker.config.definitions import LIST, ConfigDefinition
from odradek.broker.config.validators import Entries

ROLES = ("broker", "controller")
_Config = ConfigDefinition

QUORUM = (
    _Config(
        "process.roles",
        LIST,
        ROLES,
        "What the process is in its cluster: broker and controller, both in one. One without the other is refused.",
        Entries(*ROLES, least=1),
        "high",
        kafka_default="none: it must be set",
        difference="a broker on its own needs no configuration",
    ),
    _Config(
        "controller.quorum.voters",
        LIST,
        (),
        "The controllers, ID@HOST:PORT each. This node can be the only one; any other is refused.",
        Entries(),
        "high",
    ),
    _Config(
        "controller.quorum.bootstrap.servers",
        LIST,
        (),
        "Controllers to ask about the quorum, HOST:PORT each. It can be this node's own listener for controllers; any other is "
        "refused.",
        Entries(),
        "high",
    ),
)

QUORUM_SECTIONS = (("The cluster", QUORUM),)
