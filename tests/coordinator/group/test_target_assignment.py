"""What the assignor of a group is given, and a group whose assignor fails."""

import pytest

from odradek.coordinator.group.assignor.builtin import ASSIGNORS
from odradek.coordinator.group.consumer.groups import ConsumerGroupServices
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.group.consumer_bed import ConsumerBed


class Given(ConsumerBed):
    """Assignors: ``uniform``, which remembers what it is given, and ``broken``, which raises while ``failure`` is there."""

    def __init__(self, **config):
        self.specs = []
        self.failure = RuntimeError("no idea")
        super().__init__(assignment_interval_ms=0, **config)
        self.topic("t", 4)
        self.topic("u", 2)

    def _services(self):
        assignors = {"uniform": self._uniform, "broken": self._broken}
        return ConsumerGroupServices(topics=self.topics, config_of=lambda _: self.group_config, assignors=assignors)

    def _uniform(self, spec):
        self.specs.append(spec)
        return ASSIGNORS["uniform"](spec)

    def _broken(self, spec):
        if self.failure is not None:
            raise self.failure
        return ASSIGNORS["range"](spec)


@pytest.fixture
def bed():
    return Given()


def test_the_assignor_is_given_members_topics_and_targets(bed):
    bed.accepted("a", 0, instance_id="i", rack_id="r")
    bed.accepted("b", 0, subscribed_topic_names=["t", "u", "absent"])
    [_, spec] = bed.specs
    t, u = (bed.topics.by_name[name] for name in "tu")
    assert spec.topics == {t.topic_id: t, u.topic_id: u}
    a, b = spec.members["a"], spec.members["b"]
    assert (a.topic_ids, a.assignment, a.instance_id, a.rack_id) == ({t.topic_id}, {t.topic_id: {0, 1, 2, 3}}, "i", "r")
    assert (b.topic_ids, b.assignment, b.instance_id, b.rack_id) == ({t.topic_id, u.topic_id}, {}, None, None)
    assert spec.members.keys() == {"a", "b"}


@pytest.mark.parametrize(
    ("one", "other", "is_homogeneous"),
    [
        ({"subscribed_topic_names": ["t", "u"]}, {"subscribed_topic_names": ["u", "t"]}, True),
        ({"subscribed_topic_names": ["t"]}, {"subscribed_topic_names": ["t", "u"]}, False),
        ({"subscribed_topic_names": ["t"]}, {"subscribed_topic_names": ["t", "absent"]}, False),
        ({"subscribed_topic_regex": "t"}, {"subscribed_topic_regex": "t"}, True),
        ({"subscribed_topic_regex": "t"}, {"subscribed_topic_regex": "[t]"}, False),
        ({"subscribed_topic_regex": "t"}, {"subscribed_topic_names": ["t"]}, False),
    ],
)
def test_members_are_alike_by_what_they_ask_for(bed, one, other, is_homogeneous):
    bed.accepted("a", 0, **one)
    bed.accepted("b", 0, **other)
    assert bed.specs[-1].is_homogeneous is is_homogeneous


def test_a_static_member_that_is_back_has_the_target_of_its_former_self(bed):
    bed.accepted("a", 0, instance_id="i")
    bed.accepted("a", -2, instance_id="i")
    bed.topic("t", 5)
    bed.accepted("b", 0, instance_id="i")
    spec = bed.specs[-1]
    assert spec.members.keys() == {"b"}
    assert list(spec.members["b"].assignment.values()) == [{0, 1, 2, 3}]


def test_a_member_whose_assignor_fails_is_told_so_and_not_taken_in(bed):
    bed.accepted("a", 0)
    answer = bed.beat("b", 0, server_assignor="broken")
    # Of two assignors that as many prefer, the first by name is taken.
    assert isinstance(answer, KafkaError)
    assert answer.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert answer.reason == "the assignor failed for epoch 3: no idea"
    assert bed.reports.lines[-1] == (
        "warn",
        "a target assignment failed",
        {"group": "g", "epoch": 3, "assignor": "broken", "error": "RuntimeError: no idea"},
    )
    assert bed.refused("b", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bed.accepted("a", 2)[0] == 2


def test_a_group_goes_on_when_its_assignor_does(bed):
    bed.refused("a", 0, server_assignor="broken")
    bed.failure = None
    assert bed.accepted("a", 0, server_assignor="broken") == (2, {"t": [0, 1, 2, 3]})


def test_members_that_come_to_prefer_another_assignor_are_assigned_anew(bed):
    bed.failure = None
    assert bed.accepted("a", 0)[0] == 2
    assert bed.accepted("a", 2, server_assignor="broken")[0] == 3
    assert bed.accepted("a", 3, server_assignor="broken") == (3, None)


def test_a_topic_that_changes_while_the_assignor_fails_is_assigned_afterwards(bed):
    bed.failure = None
    bed.accepted("a", 0, server_assignor="broken")
    bed.failure = RuntimeError()
    bed.topic("t", 5)
    assert bed.refused("a", 2) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert bed.refused("a", 2) == ErrorCode.UNKNOWN_SERVER_ERROR
    bed.failure = None
    assert bed.accepted("a", 2) == (3, {"t": [0, 1, 2, 3, 4]})
