"""The sticky task assignor: all tasks are active once, processes share the load, members keep tasks and state.

``tests/campaigns/task_assignor_differential`` compares it with Kafka's.
"""

from odradek.coordinator.group.assignor.sticky_task_assignor import assign_sticky
from odradek.coordinator.group.assignor.streams_interface import MemberTasks, StreamsGroupSpec, StreamsMemberSpec
from tests.campaigns.task_assignor_differential.history import History
from tests.campaigns.task_assignor_differential.kafkas import Subtopology, Topology

STATEFUL = Topology({"0": Subtopology(4, is_stateful=True)})


def member(process_id, active=(), standby=(), offsets=None):
    return StreamsMemberSpec(
        process_id=process_id,
        active_tasks={"0": frozenset(active)} if active else {},
        standby_tasks={"0": frozenset(standby)} if standby else {},
        task_offsets={"0": offsets} if offsets else {},
    )


def assign(members, standbys=0, topology=STATEFUL):
    return assign_sticky(StreamsGroupSpec(members=members, num_standby_replicas=standbys), topology)


def active(assignment):
    return {member_id: sorted(tasks.active.get("0", ())) for member_id, tasks in assignment.items()}


def test_every_task_is_active_once_and_its_standbys_are_in_other_processes():
    for seed in range(60):
        for group, topology in History(seed).steps():
            holders = {}
            for member_id, tasks in assign_sticky(group, topology).items():
                assert tasks.warmup == {}
                for kind in (tasks.active, tasks.standby):
                    for subtopology_id, partitions in kind.items():
                        for partition in partitions:
                            process_id = group.members[member_id].process_id
                            of_kind = holders.setdefault((subtopology_id, partition), ([], []))[kind is tasks.standby]
                            of_kind.append(process_id)
            processes = {each.process_id for each in group.members.values()}
            for subtopology_id in topology.subtopologies():
                wanted = group.num_standby_replicas if topology.is_stateful(subtopology_id) else 0
                for partition in range(topology.max_num_input_partitions(subtopology_id)):
                    is_active, is_standby = holders.pop((subtopology_id, partition))
                    assert (len(is_active), len(is_standby)) == (1, min(wanted, len(processes) - 1))
                    assert len({*is_active, *is_standby}) == len(is_active) + len(is_standby)
            assert holders == {}


def test_the_load_is_shared_by_processes_and_then_by_members():
    assert active(assign({"a": member("p"), "b": member("p"), "c": member("q")})) == {"a": [0], "b": [2], "c": [1, 3]}


def test_members_keep_their_tasks_up_to_the_quota_and_a_new_member_gets_the_rest():
    assert active(assign({"a": member("p", active=range(4)), "b": member("q")})) == {"a": [0, 1], "b": [2, 3]}


def test_the_member_with_the_state_takes_over():
    gone = {"a": member("p", active=[0, 1]), "c": member("r")}
    # A standby comes before offsets on a disk, and a higher offset before a lower one.
    for state in ({"standby": [3]}, {"offsets": {3: 1}}):
        assert 3 in active(assign({**gone, "b": member("q", **state)}))["b"]
    assert 3 in active(assign({"b": member("q", offsets={3: 5}), "c": member("r", offsets={3: 9})}))["c"]
    assert 3 in active(assign({"b": member("q", standby=[3]), "c": member("r", offsets={3: 9})}))["b"]


def test_nothing_to_assign():
    assert assign({}) == {}
    assert assign({"a": member("p")}, topology=Topology({})) == {"a": MemberTasks({}, {}, {})}
