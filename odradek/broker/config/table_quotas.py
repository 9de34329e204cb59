"""The table, part of client quotas: what their rates are measured over."""

from odradek.broker.config.definitions import INT, ConfigDefinition
from odradek.broker.config.validators import AtLeast


def _window(name: str, default: int, what: str) -> ConfigDefinition:
    return ConfigDefinition(name, INT, default, what, AtLeast(1), "low")


QUOTAS = (
    _window("quota.window.num", 11, "How many samples the rates of client quotas are measured over."),
    _window("quota.window.size.seconds", 1, "How long such a sample is. A request quota throttles for so long at most."),
    _window(
        "controller.quota.window.num",
        11,
        "How many samples' worth of partitions a client may change at once where its controller mutation quota has rested.",
    ),
    _window("controller.quota.window.size.seconds", 1, "How long such a sample is."),
)
QUOTA_SECTIONS = (("Client quotas", QUOTAS),)
