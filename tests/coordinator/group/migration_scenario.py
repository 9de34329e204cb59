"""The scenarios of groups that change their protocol: those of consumer groups, and what classic members do.

    policy NAME                                group.consumer.migration.policy
    join WHO [names=A,B] [owns=A:0.1] [instance=] [protocols=range,...]
    sync WHO [assign=WHO:A:0.1|A:2,...]         an assignment: topics with their partitions
    heartbeat WHO | classic-leave WHO

WHO of these is a name. Its member id, once it is given one, goes along in its requests, and so does its generation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.coordinator.group.config import MigrationPolicy
from odradek.protocol.coordinator_records import GroupMetadataKey, GroupMetadataValue
from odradek.protocol.coordinator_records.consumer_protocol import assigned_partitions
from odradek.protocol.errors import ErrorCode
from tests.coordinator.group.consumer_scenario import ConsumerScenario, shown_partitions
from tests.coordinator.group.migration_bed import assignment, subscription


@dataclass
class _Client:
    member_id: str = ""
    generation: int = -1
    lines: list[str] = field(default_factory=list)


class MigrationScenario(ConsumerScenario):
    def __init__(self):
        super().__init__()
        self._clients = {}
        self._told_later = []

    def run(self, command):
        name, _, rest = command.partition(" ")
        output = super().run(f"{name.replace('-', '_')} {rest}")
        later, self._told_later = self._told_later, []
        return [*later, *output]

    def _record(self, record):
        key, value = record
        if not isinstance(key, GroupMetadataKey):
            return super()._record(record)
        if not isinstance(value, GroupMetadataValue):
            return f"group_metadata {key.group}: tombstone"
        members = ", ".join(f"{each.member_id} has={_read(each.assignment)}" for each in value.members)
        return f"group_metadata {key.group}: generation={value.generation} leader={value.leader} members=[{members}]"

    def _policy(self, names, _):
        self._bed.group_config = self._bed.group_config._replace(migration_policy=MigrationPolicy(names[0]))

    def _join(self, names, options):
        who = names[0]
        client = self._clients.setdefault(who, _Client())
        metadata = subscription(options.get("names", "t").split(","), _partitions(options.get("owns", "")))
        request = {
            "instance_id": options.get("instance"),
            "protocols": [(name, metadata) for name in options.get("protocols", "range").split(",")],
            "on_response": lambda response: self._joined(who, response),
        }
        answer = self._bed.join(client.member_id, **request)
        if answer.response is not None and answer.response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            answer = self._bed.join(client.member_id, **request)
        if answer.response is None:
            self._bed.advance(0)
        if answer.response is None:
            self._told_later.append(f"{who}: join waits")

    def _joined(self, who, response):
        client = self._clients[who]
        code = ErrorCode(response.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = response.member_id
            return
        line = f"{who}: join {code.name}"
        if code is ErrorCode.NONE:
            client.member_id, client.generation = response.member_id, response.generation_id
            leader = response.leader or "nobody"
            line += f" member={response.member_id} generation={response.generation_id} leader={leader}"
        self._told_later.append(line)

    def _sync(self, names, options):
        who = names[0]
        client = self._clients[who]
        given = {}
        for part in options.get("assign", "").split(","):
            if part:
                name, _, share = part.partition(":")
                given[self._clients[name].member_id] = assignment(_partitions(share))
        answer = self._bed.sync(client.member_id, client.generation, given, on_response=lambda told: self._synced(who, told))
        if answer.response is None:
            self._told_later.append(f"{who}: sync waits")

    def _synced(self, who, response):
        code = ErrorCode(response.error_code)
        has = f" assignment={_read(response.assignment)}" if code is ErrorCode.NONE else ""
        self._told_later.append(f"{who}: sync {code.name}{has}")

    def _heartbeat(self, names, _):
        client = self._clients[names[0]]
        yield f"{names[0]}: heartbeat {self._bed.heartbeat(client.member_id, client.generation).name}"

    def _classic_leave(self, names, _):
        response = self._bed.leave((self._clients[names[0]].member_id, None, None))
        yield f"{names[0]}: leave {ErrorCode(response.members[0].error_code).name}"


def _partitions(text):
    pairs = [part.split(":") for part in text.split("|") if part]
    return {topic: [int(index) for index in indexes.split(".")] for topic, indexes in pairs}


def _read(data):
    return shown_partitions(dict(assigned_partitions(data)))
