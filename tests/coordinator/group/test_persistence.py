"""What is stored is what a fresh shard has, whatever happened."""

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.coordinator.group.classic.groups import group_record, restored_group
from odradek.coordinator.runtime.timeline import TimelineDict
from odradek.protocol.coordinator_records import GroupMetadataValue, MemberMetadata
from odradek.protocol.errors import ErrorCode
from tests.coordinator.group.bed import Bed


def _settled(group):
    return (
        group.state,
        group.generation,
        group.protocol_type,
        group.protocol,
        group.leader,
        group.static_members,
        [
            (
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.metadata(group.protocol),
                member.assignment,
            )
            for member in group.members.values()
        ],
    )


def test_a_stable_group_is_restored_field_by_field():
    bed = Bed()
    bed.stable("a", "b", protocols=[("range", b"m"), ("sticky", b"s")])
    before = _settled(bed.group())
    bed.restart()
    assert _settled(bed.group()) == before


def test_an_old_value_s_rebalance_timeout_is_its_session_timeout():
    value = GroupMetadataValue("consumer", 3, "range", "a", -1, (MemberMetadata("a", None, "c", "/h", -1, 9_000, b"", b""),))
    assert restored_group("g", value).members["a"].rebalance_timeout_ms == 9_000


def test_a_value_whose_leader_is_no_member_has_another():
    value = GroupMetadataValue("consumer", 3, "range", "gone", -1, (MemberMetadata("a", None, "c", "/h", 1, 1, b"", b""),))
    assert restored_group("g", value).leader == "a"


def test_a_restored_group_is_written_as_it_was():
    bed = Bed()
    bed.stable("a", "b")
    (value,) = bed.shard.groups.stored.values()
    group = restored_group("g", value)
    assert group_record(group, {member.member_id: member.assignment for member in group.members.values()}).value == value


def test_a_member_with_more_protocols_than_were_stored_counts_as_changed():
    bed = Bed()
    protocols = [("range", b"m"), ("sticky", b"s")]
    _, follower = bed.stable("a", "b", protocols=protocols)
    bed.restart()
    assert bed.join(follower, protocols=protocols).waits


def test_the_stored_state_is_a_timeline():
    assert isinstance(Bed().shard.groups.stored, TimelineDict)


_STEP = st.one_of(
    st.tuples(st.just("join"), st.integers(0, 4), st.sampled_from(["range:1", "range:2", "sticky:1,range:1"])),
    st.tuples(st.just("sync"), st.integers(0, 4)),
    st.tuples(st.just("beat"), st.integers(0, 4)),
    st.tuples(st.just("leave"), st.integers(0, 4)),
    st.tuples(st.just("advance"), st.sampled_from([0, 1, 3_000, 10_000])),
    st.tuples(st.just("fail"), st.booleans()),
    st.tuples(st.just("unload")),
)


class _Crowd:
    """Five clients, the last two of them static, that do what they are told to, sensibly or not."""

    def __init__(self):
        self.bed = Bed(group_initial_rebalance_delay_ms=1)
        self.ids = [""] * 5
        self.generations = [-1] * 5
        self.answers = []
        self.highest = 0

    def step(self, step):
        getattr(self, step[0])(*step[1:])

    def join(self, index, protocols):
        def joined(response):
            if getattr(response, "error_code", None) in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.ids[index] = response.member_id
                self.generations[index] = response.generation_id
                if response.error_code == ErrorCode.NONE:
                    self.highest = max(self.highest, response.generation_id)
            elif getattr(response, "error_code", None) == ErrorCode.UNKNOWN_MEMBER_ID:
                self.ids[index] = ""

        self.answers.append(
            self.bed.join(
                self.ids[index],
                client_id=str(index),
                instance_id=f"i{index}" if index > 2 else None,
                protocols=[(name, metadata.encode()) for name, metadata in (p.split(":") for p in protocols.split(","))],
                on_response=joined,
            )
        )

    def sync(self, index):
        assignments = {member_id: f"{member_id} of {self.generations[index]}".encode() for member_id in self.ids}
        self.answers.append(self.bed.sync(self.ids[index], self.generations[index], assignments, protocol=None, version=4))

    def beat(self, index):
        self.bed.heartbeat(self.ids[index], self.generations[index])

    def leave(self, index):
        self.bed.leave((self.ids[index], None, None))

    def advance(self, duration_ms):
        self.bed.advance(duration_ms)

    def fail(self, does):
        self.bed.log.failure = ErrorCode.NOT_ENOUGH_REPLICAS if does else None

    def unload(self):
        self.bed.unload()
        self.bed.load()


@settings(max_examples=150, deadline=None)
@given(st.lists(_STEP, max_size=40))
def test_whatever_happens_a_settled_group_is_the_one_that_is_stored(steps):
    crowd = _Crowd()
    bed = crowd.bed
    failed = False
    for step in steps:
        crowd.step(step)
        failed = failed or bed.log.failure is not None
        group = bed.group()
        if group is not None:
            assert group.waiting_joins == sum(member.waiting_join is not None for member in group.members.values())
            assert group.leader in group.members or not group.members
            assert {i: m.member_id for m in group.members.values() if (i := m.group_instance_id)} == group.static_members
            assert set(group.pending_syncs) <= set(group.members)
            if group.state == "Stable" and not failed:
                (value,) = bed.shard.groups.stored.values()
                assert _settled(group) == _settled(restored_group("g", value))
    bed.unload()
    assert all(answer.answers == 1 for answer in crowd.answers)
    assert [event for event, _ in bed.faults if "append" not in event] == []
