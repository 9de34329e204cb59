"""Groups that change their protocol, on Apache Kafka and on odradek: the answers to each step, and the records that are left.

Left out: time. Sessions and rebalance timeouts are tested on a virtual clock (``tests/coordinator/group``).
"""

import re
from contextlib import ExitStack, closing
from difflib import unified_diff

import pytest

from tests.broker_process import BrokerProcess
from tests.campaigns.kafka_tools.kafka_broker import KafkaRuns
from tests.campaigns.wire_differential.migration_scripts import SCRIPTS
from tests.campaigns.wire_differential.migration_steps import Steps
from tests.campaigns.wire_differential.settings import OF_KAFKA, SETTINGS

pytestmark = [pytest.mark.xdist_group("kafka-tools"), pytest.mark.timeout(120)]

# A downgrade writes what classic members have, and in Kafka what they are to have: docs/differences-all.md. In these scripts,
# one of them has yet to be told. Else, both are the same.
YET_TO_BE_TOLD = {"refusals", "leaves_by_hand"}
ASSIGNMENT = re.compile(r"(GroupMetadataValue\(.* assignment=)b'[^']*'")
ONE_PARTITION = {**SETTINGS, "offsets.topic.num.partitions": "1"}


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    scratch = tmp_path_factory.mktemp("migration")
    with ExitStack() as stack:
        kafka = stack.enter_context(KafkaRuns(scratch / "kafka").serving("broker", {**ONE_PARTITION, **OF_KAFKA}))
        broker = stack.enter_context(BrokerProcess(scratch / "odradek", settings=ONE_PARTITION))
        yield kafka.address, broker.address


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_group_that_changes_its_protocol_has_the_answers_and_the_records_of_kafka(addresses, script):
    told = []
    for address in addresses:
        steps = Steps(address, f"group-of-{script.__name__}")
        with closing(steps):
            script(steps)
            told.append([*steps.told, *sorted_within_members(steps.records())])
            assert steps.written_otherwise() == []
    kafka, odradek = told
    if script.__name__ in YET_TO_BE_TOLD:
        assert kafka != odradek
        kafka, odradek = ([ASSIGNMENT.sub(r"\1...", line) for line in lines] for lines in told)
    difference = "\n".join(unified_diff(kafka, odradek, "kafka", "odradek", lineterm="", n=1))
    assert not difference, difference


def sorted_within_members(records):
    """Kafka has the members of a group in the order of a hash: records of one kind that follow one another are put in order."""
    found = []
    for record in records:
        if found and record.split("(")[0] == found[-1][0].split("(")[0]:
            found[-1].append(record)
        else:
            found.append([record])
    return [record for run in found for record in sorted(run)]
