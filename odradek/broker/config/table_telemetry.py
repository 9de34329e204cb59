"""The table, part of client telemetry (KIP-714)."""

from odradek.broker.config.definitions import INT, ConfigDefinition
from odradek.broker.config.validators import AtLeast

TELEMETRY_SECTIONS = (
    (
        "Client telemetry",
        (
            ConfigDefinition(
                "telemetry.max.bytes",
                INT,
                1048576,
                "The most bytes that a client may push at a time, compressed as they come.",
                AtLeast(1),
                importance="low",
            ),
        ),
    ),
)
