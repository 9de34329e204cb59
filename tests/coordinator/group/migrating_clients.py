"""Clients of either protocol in one group, as their protocols have them act: what each of them owns at any time."""

from __future__ import annotations

from odradek.protocol.coordinator_records.consumer_protocol import assigned_partitions, read_subscription
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.group.migration_bed import assignment, subscription

TOPIC = "t"
EAGER, COOPERATIVE = "range", "cooperative-sticky"
# The member is to join again; it is not known, and gives everything up.
_LATE = {ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS}
_UNKNOWN = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
}


class ConsumerClient:
    """A member of the consumer protocol. It owns what it was told last."""

    def __init__(self, bed, name, instance_id):
        self._bed = bed
        self.name = name
        self.instance_id = instance_id
        self.epoch = 0
        self.owned = set()

    @property
    def is_settled(self):
        return self.epoch > 0

    def step(self):
        owned = {TOPIC: sorted(self.owned)} if self.owned else {}
        answer = self._bed.beat(self.name, self.epoch, instance_id=self.instance_id, owned=owned)
        if isinstance(answer, KafkaError):
            if answer.code in _UNKNOWN:
                self.owned = set()
                self.epoch = 0
            return
        if answer is None:
            return
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {index for each in answer.assignment.topic_partitions for index in each.partitions}

    def forget_answers(self):
        """It asks again anyway."""

    def leave(self):
        self.owned = set()
        self._bed.beat(self.name, -1, instance_id=self.instance_id)


class ClassicClient:
    """A member of the classic protocol. An eager one gives all up before it joins, a cooperative one what it is not to have."""

    def __init__(self, bed, name, protocol, instance_id):
        self._bed = bed
        self.name = name
        self._protocol = protocol
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.owned = set()
        self._must_join = True
        self._join = None
        self._sync = None

    @property
    def is_settled(self):
        return not self._must_join and self._join is None and self._sync is None

    def step(self):
        if self._join is not None:
            self._take_join(self._join)
        elif self._sync is not None:
            self._take_sync(self._sync)
        elif self._must_join:
            self._send_join()
        else:
            code = self._bed.heartbeat(self.member_id, self.generation, instance_id=self.instance_id)
            self._heed(code)

    def _heed(self, code):
        if code in _UNKNOWN:
            self.member_id = ""
        if code in _UNKNOWN or code is ErrorCode.ILLEGAL_GENERATION:
            self.owned = set()
        if code in _UNKNOWN or code in _LATE:
            self._must_join = True

    def _send_join(self):
        if self._protocol == EAGER:
            self.owned = set()
        metadata = subscription(owned={TOPIC: sorted(self.owned)} if self.owned else {})
        self._join = self._bed.join(
            self.member_id, instance_id=self.instance_id, protocols=[(self._protocol, metadata)], client_id=self.name
        )
        self._bed.advance(0)

    def _take_join(self, answer):
        response = answer.response
        if response is None:
            return
        self._join = None
        code = ErrorCode(response.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif code is not ErrorCode.NONE:
            self._heed(code)
        else:
            self._must_join = False
            self.member_id = response.member_id
            self.generation = response.generation_id
            shares = self._share_out(response.members) if response.leader == self.member_id else None
            self._sync = self._bed.sync(
                self.member_id, self.generation, shares, protocol=self._protocol, instance_id=self.instance_id
            )

    def _share_out(self, members):
        """As the leader: a partition that a cooperative member owns goes to nobody else before it has given it up."""
        owners = {
            index: member.member_id
            for member in members
            for _, indexes in read_subscription(member.metadata).owned
            for index in indexes
        }
        ids = sorted(member.member_id for member in members)
        shares = {each: [] for each in ids}
        for index in range(self._bed.topics.by_name[TOPIC].partition_count):
            member_id = ids[index % len(ids)]
            if owners.get(index, member_id) == member_id:
                shares[member_id].append(index)
        return {each: assignment({TOPIC: share}) for each, share in shares.items()}

    def _take_sync(self, answer):
        response = answer.response
        if response is None:
            return
        self._sync = None
        code = ErrorCode(response.error_code)
        if code is not ErrorCode.NONE:
            self._heed(code)
            self._must_join = True
            return
        told = {index for _, indexes in assigned_partitions(response.assignment) for index in indexes}
        # A cooperative member that gives something up joins again, so that another one can have it.
        self._must_join = self._protocol == COOPERATIVE and not self.owned <= told
        self.owned = told

    def forget_answers(self):
        """The broker died: what was asked is not answered, and is asked again."""
        self._must_join = self._must_join or self._join is not None or self._sync is not None
        self._join = self._sync = None

    def leave(self):
        self.owned = set()
        if self.member_id:
            self._bed.leave((self.member_id, self.instance_id, None))
