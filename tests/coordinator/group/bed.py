"""A shard of groups in a real runtime, on a log in memory that can fail, under a virtual clock."""

from __future__ import annotations

from functools import partial
from itertools import count

from odradek.coordinator.group.config import GroupConfig, MemberContext
from odradek.coordinator.group.group_shard import GroupShard
from odradek.coordinator.group.offsets import OffsetConfig
from odradek.coordinator.runtime.result import decode_group_record
from odradek.coordinator.runtime.runtime import CoordinatorRuntime
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages import messages
from odradek.protocol.records import read_records
from odradek.timing.clock import VirtualClock
from odradek.timing.reply import Reply
from odradek.timing.timer import Timer
from tests.coordinator.memory_logs import MemoryLogs

JOIN = messages(ApiKey.JOIN_GROUP)
SYNC = messages(ApiKey.SYNC_GROUP)
HEARTBEAT = messages(ApiKey.HEARTBEAT)
LEAVE = messages(ApiKey.LEAVE_GROUP)

HOST = "/127.0.0.1"


class Reports:
    """The lines that would be in the broker's log."""

    def __init__(self):
        self.lines = []

    def info(self, event, **fields):
        self.lines.append(("info", event, fields))

    def warn(self, event, **fields):
        self.lines.append(("warn", event, fields))


class Answer:
    """What a request was answered with; ``response`` is None while it waits. A second answer is remembered as a fault."""

    def __init__(self, on_response=None):
        self.response = None
        self.answers = 0
        self._on_response = on_response
        self.reply = Reply()
        self.reply.when_done(self)

    def __call__(self, response):
        self.answers += 1
        self.response = response
        if self._on_response is not None:
            self._on_response(response)

    @property
    def waits(self):
        return self.answers == 0


class Bed:
    """``turn`` ends a turn of the loop: what was decided is appended, and committed unless commits are held."""

    offset_config = OffsetConfig()

    def __init__(self, *, logs=None, **config):
        self.config = GroupConfig(**{"group_initial_rebalance_delay_ms": 0, **config})
        self.clock = VirtualClock()
        self.logs = logs or MemoryLogs()
        self.reports = Reports()
        self.faults = []
        self._ids = count(1)
        self._seen_batches = 0
        self.shard: GroupShard
        self.timer: Timer
        self.runtime: CoordinatorRuntime[GroupShard]
        self.epoch = 0
        self._start()

    def _start(self):
        self.timer = Timer(self.clock)
        self.runtime = CoordinatorRuntime(
            "group",
            self.logs,
            self._make_shard,
            decode_group_record,
            self.timer,
            on_fault=lambda event, error: self.faults.append((event, error)),
        )
        self.load()

    @property
    def log(self):
        return self.logs.logs[0]

    def _make_shard(self, partition, context):
        self.shard = GroupShard(
            context,
            config=lambda: self.config,
            reports=self.reports,
            new_id=self._new_id,
            offset_config=self.offset_config,
            consumer_services=self._services,
            share_services=self._share_services,
            streams_services=self._streams_services,
        )
        return self.shard

    def _new_id(self):
        return str(next(self._ids))

    def _services(self):
        """The part of a broker that consumer groups need."""
        raise NotImplementedError

    def _share_services(self):
        """The part of a broker that share groups need."""
        raise NotImplementedError

    def _streams_services(self):
        """The part of a broker that streams groups need."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------------- the loop

    def turn(self):
        self.logs.run()

    def advance(self, duration_ms):
        """Let time pass, a turn of the loop at each deadline."""
        end_ms = self.clock.monotonic_ms() + duration_ms
        while (due := self.timer.next_deadline_ms()) is not None and due <= end_ms:
            self.clock.advance(max(0, int(due - self.clock.monotonic_ms())))
            self.turn()
        self.clock.advance(int(end_ms - self.clock.monotonic_ms()))

    def load(self):
        self.epoch += 1
        self.runtime.start_loading(0, self.epoch)
        self.turn()

    def unload(self):
        self.runtime.unload(0)

    def restart(self):
        """The broker dies and is back at once: nobody is told anything, and the log is all there is."""
        self.timer.close()
        self.logs.drop_callbacks()
        self._start()

    def records(self):
        """What was appended since this was last asked."""
        fresh = self.log.batches[self._seen_batches :]
        self._seen_batches = len(self.log.batches)
        decoded = [decode_group_record(row.key or b"", row.value) for batch in fresh for row in read_records(batch)]
        return [record for record in decoded if record is not None]

    # --------------------------------------------------------------------------------------------------- the requests

    def write(self, operation, reply, *, turn=True):
        self.runtime.write(0, operation, reply)
        if turn:
            self.turn()

    def join(
        self,
        member_id="",
        *,
        group_id="g",
        instance_id=None,
        protocols=(("range", b"m"),),
        protocol_type="consumer",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        client_id="c",
        version=9,
        reason=None,
        turn=True,
        on_response=None,
    ):
        answer = Answer(on_response)
        request = JOIN.JoinGroupRequest(
            group_id=group_id,
            member_id=member_id,
            group_instance_id=instance_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            protocol_type=protocol_type,
            protocols=[JOIN.JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
            reason=reason,
        )
        context = MemberContext(client_id, HOST, version)
        reply = answer.reply
        reply.then(partial(_response, JOIN.JoinGroupResponse))
        self.write(lambda shard: shard.join_group(context, request, reply), reply, turn=turn)
        return answer

    def sync(
        self,
        member_id,
        generation=1,
        assignments=None,
        *,
        group_id="g",
        instance_id=None,
        protocol="range",
        protocol_type="consumer",
        version=5,
        turn=True,
        on_response=None,
    ):
        answer = Answer(on_response)
        request = SYNC.SyncGroupRequest(
            group_id=group_id,
            member_id=member_id,
            generation_id=generation,
            group_instance_id=instance_id,
            protocol_name=protocol,
            protocol_type=protocol_type,
            assignments=[
                SYNC.SyncGroupRequestAssignment(member_id=given, assignment=assignment)
                for given, assignment in (assignments or {}).items()
            ],
        )
        context = MemberContext("c", HOST, version)
        reply = answer.reply
        reply.then(partial(_response, SYNC.SyncGroupResponse))
        self.write(lambda shard: shard.sync_group(context, request, reply), reply, turn=turn)
        return answer

    def heartbeat(self, member_id, generation=1, *, group_id="g", instance_id=None, turn=True):
        request = HEARTBEAT.HeartbeatRequest(
            group_id=group_id, member_id=member_id, generation_id=generation, group_instance_id=instance_id
        )
        answer = Answer()
        self.write(lambda shard: shard.heartbeat(request), answer.reply, turn=turn)
        outcome = answer.response
        return outcome.code if isinstance(outcome, KafkaError) else ErrorCode(outcome.error_code)

    def leave(self, *identities, group_id="g", turn=True):
        request = LEAVE.LeaveGroupRequest(
            group_id=group_id,
            members=[
                LEAVE.MemberIdentity(member_id=member_id, group_instance_id=instance_id, reason=reason)
                for member_id, instance_id, reason in identities
            ],
        )
        answer = Answer()
        self.write(lambda shard: shard.leave_group(request), answer.reply, turn=turn)
        return answer.response

    # ------------------------------------------------------------------------------------------- the way to some state

    def add_member(self, client_id="c", **options):
        """Join with a fresh member id, as a client of today does; the member id, and the answer that is still to come."""
        first = self.join(client_id=client_id, **options)
        member_id = first.response.member_id
        if first.response.error_code != ErrorCode.MEMBER_ID_REQUIRED:
            raise AssertionError(first.response)
        return member_id, self.join(member_id, client_id=client_id, **options)

    def stable(self, *client_ids, **options):
        """A stable group of these dynamic members, each assigned its own id; the first one leads."""
        joins = [self.add_member(client_id, **options) for client_id in client_ids]
        member_ids = [member_id for member_id, _ in joins]
        self.advance(self.config.group_initial_rebalance_delay_ms)
        generation = self.group().generation
        for member_id in reversed(member_ids):
            is_leader = member_id == self.group().leader
            self.sync(member_id, generation, {each: each.encode() for each in member_ids} if is_leader else None)
        self.records()
        return member_ids

    def group(self, group_id="g"):
        return self.shard.groups.find(group_id)


def _response(response_class, outcome):
    """As the handlers do."""
    return response_class(error_code=outcome.code) if isinstance(outcome, KafkaError) else outcome
