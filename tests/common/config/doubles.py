"""Overrides and topics without a controller."""

from odradek.common.config import load
from odradek.common.config.dynamic import ConfigView


def make_view(text="", *, overrides=None, topics=("events",), has_elr=False):
    """A view over a configuration and ``overrides`` by (resource type, resource name)."""
    stored = overrides or {}
    return ConfigView(load(text), lambda kind, name: stored.get((int(kind), name), {}), set(topics).__contains__, has_elr)
