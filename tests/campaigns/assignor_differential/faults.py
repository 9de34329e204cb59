"""Faults in odradek's assignors, put in while a context lasts, each of which the comparison must find."""

from odradek.coordinator.group.assignor import builtin, spec
from odradek.coordinator.group.assignor.spec import by_id
from tests.campaigns.planted import Change, Faults


def _extras_to_the_first(held, total):
    low, extra = divmod(total, len(held))
    return [low + (place < extra) for place in range(len(held))]


def _revoke_the_first(partitions, quota):
    ordered = [(topic_id, index) for topic_id in by_id(partitions) for index in sorted(partitions[topic_id], reverse=True)]
    partitions.clear()
    builtin._give(partitions, ordered[:quota])
    return ordered[quota:]


def _forget(group, member_ids):
    return [{} for _ in member_ids], {}


def _dynamic_members_first(item):
    member_id, member = item
    return member.instance_id is not None, (member.instance_id or member_id).encode()


def _by_code_points(text):
    return text.encode("utf-32-be")


def _as_unsigned(topic_id):
    return topic_id.int


class _PassesOverAnother(builtin._MembersBySize):
    def next_donor(self, held):
        while True:
            if self._largest < self._largest_begin:
                self._lower()
            if self._largest < 0:
                return -1
            member = self._order[self._largest]
            self._largest -= 1
            if held.get(member):
                return member
            self._largest_end -= 1


class _FromTheLeft(builtin._MembersBySize):
    def __init__(self, subscribers, sizes):
        super().__init__(subscribers[::-1], sizes)


FAULTS = Faults()
FAULTS.put("extras-to-the-first", builtin, "_quotas", _extras_to_the_first)
FAULTS.put("revokes-the-first", builtin, "_revoke", _revoke_the_first)
FAULTS.add("is-not-sticky", *(Change(module, "previous_targets", _forget) for module in (builtin, builtin)))
FAULTS.add("members-by-code-points", *(Change(module, "text_order", _by_code_points) for module in (builtin, builtin)))
FAULTS.add("topics-as-unsigned", *(Change(module, "topic_order", _as_unsigned) for module in (spec, builtin)))
FAULTS.put("all-are-alike", builtin, "assign_heterogeneous", builtin.assign_homogeneous)
FAULTS.put("none-are-alike", builtin, "assign_homogeneous", builtin.assign_heterogeneous)
FAULTS.put("one-round", builtin, "_MAX_ROUNDS", 1)
FAULTS.put("no-balance", builtin, "_balance", lambda topics, sizes: None)
FAULTS.put("members-from-the-left", builtin, "_MembersBySize", _FromTheLeft)
FAULTS.put("another-is-passed-over", builtin, "_MembersBySize", _PassesOverAnother)
FAULTS.put("dynamic-members-first", builtin, "_order", _dynamic_members_first)
