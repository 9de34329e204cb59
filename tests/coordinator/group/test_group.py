from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.member import Member
from odradek.coordinator.group.classic.states import GroupState
from odradek.protocol.errors import ErrorCode
from odradek.timing.reply import Reply


def _member(member_id, protocols=(("range", b""),), instance_id=None):
    return Member(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=1,
        session_timeout_ms=1,
        protocols=protocols,
    )


def _group(*members, protocol_type="consumer"):
    group = ClassicGroup("g", GroupState.EMPTY, 0, 0)
    for member in members:
        group.add(member, protocol_type)
    return group


def _named(*names):
    return tuple((name, b"") for name in names)


def test_the_last_one_to_go_leaves_no_leader_and_no_protocols():
    group = _group(_member("a", instance_id="i"))
    group.remove("a")
    assert (group.leader, group.supporters, group.static_members) == (None, {}, {})


def test_without_anybody_joined_there_is_no_leader_to_elect():
    assert not _group(_member("a")).elect_leader()
    assert not _group().elect_leader()


def test_a_protocol_named_twice_does_not_speak_for_another_member():
    group = _group(_member("a", _named("range", "range")), _member("b", _named("sticky")))
    group.transition_to(GroupState.PREPARING_REBALANCE, 0)
    assert not group.supports("consumer", _named("range"))


def test_of_protocols_with_as_many_votes_the_oldest_member_s_wins():
    group = _group(_member("a", _named("sticky", "range")), _member("b", _named("range", "sticky")))
    assert group.select_protocol() == "sticky"


@given(
    st.lists(st.permutations(["range", "sticky", "roundrobin"]).map(lambda names: names[: len(names)]), min_size=1, max_size=6)
)
def test_the_protocol_chosen_is_one_that_all_support_and_nobody_is_preferred_more(preferences):
    members = [_member(str(index), _named(*names)) for index, names in enumerate(preferences)]
    group = _group(*members)
    votes = [names[0] for names in preferences]
    chosen = group.select_protocol()
    assert all(chosen in names for names in preferences)
    assert votes.count(chosen) == max(votes.count(name) for name in votes)


def test_a_member_that_changes_its_protocols_is_counted_anew():
    member = _member("a", _named("range", "sticky"))
    group = _group(member)
    group.update(member, _named("sticky"), 5, 6)
    assert group.supporters == {"sticky": 1}
    assert (member.rebalance_timeout_ms, member.session_timeout_ms) == (5, 6)


def test_who_waits_is_counted_once():
    member = _member("a")
    group = _group(member)
    later = Reply()
    group.hold_join(member, Reply())
    group.hold_join(member, later)
    assert (group.waiting_joins, group.has_all_members_joined) == (1, True)
    assert group.release_join(member) is later
    assert group.release_join(member) is None
    assert group.waiting_joins == 0


def test_a_static_member_keeps_its_place_under_another_id():
    member = _member("a", instance_id="i")
    group = _group(member, _member("b"))
    group.pending_syncs["a"] = None
    group.rename_static_member(member, "a2")
    assert list(group.members) == ["b", "a2"]
    assert (group.leader, group.static_members, list(group.pending_syncs)) == ("a2", {"i": "a2"}, ["a2"])


def test_members_are_told_apart_by_member_id_and_instance_id():
    group = _group(_member("a", instance_id="i"), _member("b"))
    assert group.validate_member("a", "i") == ErrorCode.NONE
    assert group.validate_member("a", None) == ErrorCode.NONE
    assert group.validate_member("b", None) == ErrorCode.NONE
    assert group.validate_member("x", None) == ErrorCode.UNKNOWN_MEMBER_ID
    assert group.validate_member("b", "i") == ErrorCode.FENCED_INSTANCE_ID
    assert group.validate_member("a", "other") == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_rebalance_timeout_is_the_longest_of_the_members():
    group = _group(_member("a"), _member("b"))
    group.members["b"].rebalance_timeout_ms = 9
    assert group.rebalance_timeout_ms == 9
    assert _group().rebalance_timeout_ms == 0


def _subscription(*topics):
    return (
        b"\0\1"
        + len(topics).to_bytes(4)
        + b"".join(len(topic).to_bytes(2) + topic.encode() for topic in topics)
        + b"\xff\xff\xff\xff"
    )


def test_the_topics_of_all_members_are_the_group_s():
    group = _group(_member("a", (("range", _subscription("x", "y")),)), _member("b", (("range", _subscription("y", "z")),)))
    group.transition_to(GroupState.PREPARING_REBALANCE, 0)
    group.begin_generation(0)
    assert group.subscribed_topics == {"x", "y", "z"}
    assert group.is_subscribed_to("x")
    assert not group.is_subscribed_to("w")


def test_with_a_subscription_that_cannot_be_read_a_group_of_consumers_may_read_anything():
    group = _group(_member("a", (("range", b"\0"),)))
    group.transition_to(GroupState.PREPARING_REBALANCE, 0)
    group.begin_generation(0)
    assert group.subscribed_topics is None
    assert group.is_subscribed_to("x")


def test_a_group_of_another_type_reads_no_topics():
    group = _group(_member("a", (("range", _subscription("x")),)), protocol_type="connect")
    group.transition_to(GroupState.PREPARING_REBALANCE, 0)
    group.begin_generation(0)
    assert group.subscribed_topics is None
    assert not group.is_subscribed_to("x")
