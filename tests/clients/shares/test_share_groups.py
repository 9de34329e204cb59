"""Consumers of share groups (KIP-932): librdkafka's, Java's and franz-go's, each by itself and in one group."""

from collections import Counter

import pytest

from tests.clients.shares.share_group import SETTINGS

# The other languages are for a further judge: franz-go alone takes a minute to compile.
MAKES = ("librdkafka", *(pytest.param(make, marks=pytest.mark.further) for make in ("java", "franz-go")))
TOGETHER = (
    pytest.param(("librdkafka", "librdkafka"), id="librdkafka"),
    pytest.param(("librdkafka", "java", "franz-go"), id="all", marks=pytest.mark.further),
)
# The first test of a client compiles it, franz-go for minutes where no other test has compiled it yet.
pytestmark = pytest.mark.timeout(400)


@pytest.mark.parametrize("make", MAKES)
def test_a_consumer_accepts_releases_and_rejects(broker, group_of, new_name, program_of, make):
    group = group_of(broker.address, new_name())
    member = group.member(program_of(make))
    group.fill(300)
    group.wait_until_worked()
    assert member.leave() == 0
    group.check()
    assert not group.told("lost")
    words = Counter(word for _, _, word in group.told("done").elements())
    assert words == {"accept": 270, "reject": 30, "release": 60}
    # A released record comes again, and nothing else does.
    counts = [int(count) for _, _, count in group.told("got").elements()]
    assert (counts.count(1), counts.count(2), len(counts)) == (300, 60, 360)


@pytest.mark.parametrize("make", MAKES)
def test_the_records_of_a_killed_member_come_again(broker, group_of, new_name, program_of, make):
    group = group_of(broker.address, new_name())
    killed = group.member(program_of(make), mode="hold")
    group.fill(30)
    group.wait_until(killed.holds.is_set, lambda: killed.told)
    held = {line[1:3] for line in killed.told}
    killed.kill9()
    survivor = group.member(program_of("librdkafka"))
    group.wait_until_worked()
    group.check()
    again = {line[1:3] for line in survivor.told if line[0] == "got" and line[3] == "2"}
    assert held <= again


@pytest.mark.parametrize("makes", TOGETHER)
def test_one_group_survives_kills_of_its_broker_and_of_members(broker_process, group_of, new_name, program_of, makes):
    commands = [program_of(make) for make in makes]
    broker = broker_process(settings=SETTINGS)
    group = group_of(broker.address, new_name())
    for command in commands:
        worker = group.member(command)
        holder = group.member(command, mode="hold")
        group.fill(300)
        broker.kill9()
        broker.start()
        group.fill(300)
        worker.kill9()
        holder.kill9()
        group.member(command)
    group.fill(300)
    group.wait_until_worked()
    group.check()
