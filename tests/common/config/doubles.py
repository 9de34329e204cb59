"""Overrides and topics without a controller."""

from odradek.common.config import load
from odradek.common.config.dynamic import ConfigView
from odradek.controller.metadata.alterations import deciding, failed
from odradek.timing.reply import replied


def make_view(text="", *, overrides=None, topics=("events",), has_elr=False):
    """A view over a configuration and ``overrides`` by (resource type, resource name)."""
    stored = overrides or {}
    return ConfigView(load(text), lambda kind, name: stored.get((int(kind), name), {}), set(topics).__contains__, has_elr)


def alter_resources(view, alterations, commit):
    """Decide on every alteration, and commit the valid ones as one batch; a Reply of the answers in order."""
    answers = []
    changes = [change for some in deciding(view, alterations, answers) for change in some]
    return (
        commit(changes).then(lambda error: answers if error is None else failed(answers, error)) if changes else replied(answers)
    )
