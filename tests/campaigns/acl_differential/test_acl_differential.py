"""The campaign's short form: both authorizers and both brokers answer alike, and faults by which odradek would differ."""

from collections import Counter

import pytest

from odradek.broker.api import SERVED, load_module
from odradek.broker.security.acl import access
from odradek.broker.security.acl.rules import allow_all
from odradek.common import acls
from tests.campaigns.acl_differential.brokers import compare_brokers
from tests.campaigns.acl_differential.core import QUESTIONS, differences, kafkas_answers, story
from tests.campaigns.acl_differential.requests import MADE
from tests.campaigns.planted import Faults

SEEDS = range(1, 301)

pytestmark = [
    pytest.mark.xdist_group("kafka-tools"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    stories = [story(seed) for seed in SEEDS]
    return stories, kafkas_answers(stories, tmp_path_factory.mktemp("authorizers"))


def test_both_decide_the_same(compared):
    stories, answers = compared
    assert {len(each) for each in answers} == {QUESTIONS}
    assert {answer for each in answers for answer in each} == {"0", "1"}
    assert differences(stories, answers) == []


async def test_both_brokers_answer_the_same(tmp_path):
    counts = Counter()
    assert await compare_brokers(range(1, 13), tmp_path, counts) == []
    assert counts.keys() == {api_key.name for api_key in MADE}


def test_requests_are_made_of_every_api_with_a_rule():
    assert {api_key for api_key in SERVED if load_module(api_key).rule is not allow_all} == MADE


FAULTS = Faults()
FAULTS.put("without implied operations", acls, "_ALLOWING", acls._DENYING)
FAULTS.put("without wildcards", acls, "WILDCARD", "?")
FAULTS.put("with denials that imply", acls, "_DENYING", acls._ALLOWING)
FAULTS.put("without dominated patterns", access, "_is_dominated", lambda *_: False)


@pytest.mark.interpreted
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, compared):
    with FAULTS.planted(fault):
        assert differences(*compared)
