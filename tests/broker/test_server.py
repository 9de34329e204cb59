"""A broker without listeners is alone."""

import pytest

from odradek.broker.start.server import Broker
from odradek.common.config import InvalidConfig, load

ELSEWHERE = {"process.roles": "broker", "node.id": "2", "controller.listener.names": "C", "controller.quorum.voters": "1@h:9093"}


def test_a_broker_whose_controller_is_elsewhere_begins_no_cluster_of_its_own(tmp_path):
    broker = Broker(load(None, {**ELSEWHERE, "log.dirs": str(tmp_path / "data")}))
    with pytest.raises(InvalidConfig, match=r"process\.roles"):
        broker.open()
    assert not (tmp_path / "data").exists()
