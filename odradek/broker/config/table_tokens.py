"""The table, part of delegation tokens."""

from odradek.broker.config.definitions import LONG, PASSWORD, ConfigDefinition
from odradek.broker.config.validators import AtLeast

_Config = ConfigDefinition

DELEGATION_TOKENS = (
    _Config(
        "delegation.token.secret.key",
        PASSWORD,
        None,
        "What delegation tokens are made of and checked by: the same at all brokers and controllers. Without it there are no "
        "delegation tokens.",
    ),
    _Config(
        "delegation.token.max.lifetime.ms",
        LONG,
        604800000,
        "How long a delegation token can be renewed, from its creation on. A client may ask for less.",
        AtLeast(1),
    ),
    _Config(
        "delegation.token.expiry.time.ms",
        LONG,
        86400000,
        "How long a delegation token is valid from its creation, or from its last renewal, on.",
        AtLeast(1),
    ),
    _Config(
        "delegation.token.expiry.check.interval.ms",
        LONG,
        3600000,
        "How often expired delegation tokens are removed.",
        AtLeast(1),
        "low",
    ),
)
TOKEN_SECTIONS = (("Delegation tokens", DELEGATION_TOKENS),)
