"""A broker of which there is a configuration and a controller, for the handlers of configs."""

from types import SimpleNamespace

from odradek.broker.config import load
from odradek.broker.metadata.decisions import NewTopic
from tests.broker.metadata.doubles import NODE_ID, RecordedLog, make_controller


def make_broker(text="", topics=("events",)):
    """A broker with ``topics``; its metadata log is ``broker.log``."""
    config = load(text)
    log = RecordedLog()
    controller = make_controller(log, config)
    controller.create_topics([NewTopic(name=name) for name in topics])
    return SimpleNamespace(config=config, controller=controller, node_id=NODE_ID, log=log)
