"""A share partition on a virtual clock, on a log without files: a list of record batches. Members fetch from it by offsets."""

from itertools import groupby
from uuid import UUID

from odradek.broker.replica.partition import Partition
from odradek.broker.share.acquisition import RECORD_LIMIT, AcquireRequest, ReadBatch
from odradek.broker.share.in_flight import InFlightState, ShareLimits
from odradek.broker.share.release_queue import ReleaseQueue
from odradek.broker.share.share_partition import SharePartition, SharePartitionServices
from odradek.coordinator.share.state import PartitionState, SharePartitionKey
from odradek.protocol.errors import KafkaError
from odradek.protocol.message_types.share_fetch import AcknowledgementBatch
from odradek.timing.clock import VirtualClock
from odradek.timing.reply import Reply
from odradek.timing.slices import Slices
from odradek.timing.timer import Timer

KEY = SharePartitionKey("g", UUID(int=7), 0)
ACCEPT, RELEASE, REJECT, RENEW, GAP = 1, 2, 3, 4, 0


class Persister:
    """A share coordinator in memory. With ``holds``, writes wait in ``held`` for their reply."""

    def __init__(self):
        self.state = PartitionState(0, 0, 0, 0, ())
        self.writes = []
        self.holds = False
        self.held = []
        self.error = None

    def read(self, _key, _leader_epoch):
        return replied(self.error or self.state)

    def write(self, _key, _state_epoch, _leader_epoch, start_offset, delivery_complete_count, batches):
        self.writes.append((start_offset, delivery_complete_count, [tuple(batch) for batch in batches]))
        if self.holds:
            self.held.append(Reply())
            return self.held[-1]
        return replied(self.error)


def replied(response):
    reply = Reply()
    reply.complete(response)
    return reply


class Bed:
    """One share partition. ``log`` are the (first, last) offsets of the record batches."""

    def __init__(self, *log, limits=None, state=None, start_offset=0, now_ms=None):
        self.log = list(log)
        self.clock = VirtualClock()
        self.timer = Timer(self.clock)
        self.limits = limits or ShareLimits()
        self.persister = Persister()
        if state is not None:
            self.persister.state = state
        self.woken = 0
        self.accepted = 0
        # Slices of long work that are due in the loop's next turn.
        self.turns = []
        self.letters = []
        services = SharePartitionServices(
            persister=self.persister,
            timer=self.timer,
            limits=lambda _group: self.limits,
            start_offset=lambda *_: replied(start_offset),
            wake=self._wake,
            wake_soon=self._wake,
            releases=ReleaseQueue(Slices(now_ms or self.clock.monotonic_ms, self.turns.append)),
            note_accepted=self._note_accepted,
            dead_letters=self,
        )
        self.share = SharePartition(KEY, Partition("t", KEY.partition, KEY.topic_id, 3, None, lambda _: None), services)
        self.share.initialize()

    def _note_accepted(self, _group_id, records):
        self.accepted += records

    def _wake(self, _key):
        self.woken += 1

    def enqueue(self, letter):
        """The dead-letter queue."""
        reply = Reply()
        self.letters.append((letter[1:], reply))
        return reply

    @property
    def window(self):
        return self.share.window

    def fetch(self, member="m", most=500, *, batch_size=500, mode=0, aborted=(), batches=None):
        """The (first offset, last offset, delivery count) of the records that a member acquires."""
        if not self.share.has_room:
            return []
        offset = self.window.next_fetch_offset()
        read = batches or [ReadBatch(first, last, 0, 0) for first, last in self.log if last >= offset]
        request = AcquireRequest(member, offset, most, batch_size, mode == RECORD_LIMIT, 0.0)
        return [tuple(each) for each in self.share.acquire(request, read, list(aborted))]

    def acknowledge(self, *ranges, member="m"):
        """The name of the error that acknowledging (first, last, type...) gets, or None; "waits" while it is being written."""
        *_, reply = self.acknowledging(*ranges, member=member)
        return name_of(reply)

    def acknowledging(self, *ranges, member="m"):
        """Acknowledge piece by piece: yields None at each pause, and at last the reply."""
        batches = [AcknowledgementBatch(first, last, types) for first, last, *types in ranges]
        yield (yield from self.share.acknowledge(member, batches))

    def release(self, member="m"):
        """The outcomes of releasing a member's records, piece by piece: None, or the name of an error."""
        ends = []
        self.share.release(member, ends.append)
        return ends

    def states(self):
        """The window, as text: the start offset, then its records. Neighbours in one batch that are alike are told as one."""
        told = []
        for batch in self.window.batches:
            for (state, count, member), runs in groupby(batch.runs, lambda run: (run.state, run.delivery_count, run.member_id)):
                alike = list(runs)
                told.append(repr(InFlightState(alike[0].first_offset, alike[-1].last_offset, state, count, member)))
        return [self.window.start_offset, *told]


def name_of(reply):
    if not reply.done:
        return "waits"
    return reply.response.code.name if isinstance(reply.response, KafkaError) else None
