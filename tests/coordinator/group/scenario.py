"""The groups' scenarios: what clients do, and all that comes of it, in order. Their form: tests/coordinator/scenario_files.py.

    config KEY=VALUE ...                       changes configs, written with underscores
    join WHO [id=] [gen=] [group=] [instance=] [protocols=NAME:METADATA,...] [type=] [version=] [session=] [rebalance=] [reason=]
    sync WHO [gen=] [assign=WHO:TEXT,...] [protocol=] [type=] [instance=] [version=]
    heartbeat WHO [gen=] [id=] [instance=]
    leave WHO ... [instance=] [reason=]        WHO is - for a member known by its instance id only
    advance DURATION                           lets time pass: 500ms, 3s, 5m
    appends fail ERROR | appends work          | commits wait | commits go on
    unload | load | restart                    restart is a broker's: nobody is answered
    state [GROUP]  describe GROUP [version=]  list [states=] [types=]  delete GROUP ...

WHO is a client's name and client id. Its member id, once it has one, goes along in its requests; so does its generation.
Member ids end in a number instead of a UUID. A command that begins with ``+`` is in one turn of the loop with the next.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

from odradek.coordinator.group.registry import group_filter
from odradek.protocol.coordinator_records import GroupMetadataValue
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.group.bed import Answer, Bed
from tests.coordinator.long_work import finished
from tests.coordinator.scenario_files import duration_ms


class _Client:
    def __init__(self, name):
        self.name = name
        self.member_id = ""
        self.generation = -1


class Scenario:
    def __init__(self):
        self._bed = Bed()
        self._clients = {}
        self._output = []
        self._lines_seen = 0

    def run(self, command):
        in_turn = not command.startswith("+")
        name, *words = shlex.split(command.removeprefix("+"))
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        self._output = []
        getattr(self, f"_{name}")(names, options)
        if in_turn:
            self._bed.turn()
        self._output += [*self._appended(), *self._lines(), *(f"FAULT {event}: {error!r}" for event, error in self._bed.faults)]
        self._bed.faults.clear()
        return self._output

    # ---------------------------------------------------------------------------------------------------- what happened

    def _appended(self):
        for record in self._bed.records():
            yield f"  written {_record(record)}"

    def _lines(self):
        lines = self._bed.reports.lines
        fresh, self._lines_seen = lines[self._lines_seen :], len(lines)
        for level, event, fields in fresh:
            yield f"  {level}: {event}: " + " ".join(f"{key}={_shown(value)}" for key, value in fields.items())

    def _client(self, name):
        return self._clients.setdefault(name, _Client(name))

    # ----------------------------------------------------------------------------------------------------- the commands

    def _config(self, _, options):
        self._bed.config = replace(self._bed.config, **{key: int(value) for key, value in options.items()})

    def _join(self, names, options):
        client = self._client(names[0])
        protocols = [part.split(":") for part in options.get("protocols", "range:m").split(",") if part]
        answer = self._bed.join(
            options.get("id", client.member_id),
            group_id=options.get("group", "g"),
            instance_id=options.get("instance"),
            protocols=[(protocol, metadata.encode()) for protocol, metadata in protocols],
            protocol_type=options.get("type", "consumer"),
            session_timeout_ms=duration_ms(options.get("session", "10s")),
            rebalance_timeout_ms=duration_ms(options.get("rebalance", "60s")),
            client_id=client.name,
            version=int(options.get("version", "9")),
            reason=options.get("reason"),
            turn=False,
            on_response=lambda response: self._joined(client, response),
        )
        if answer.waits:
            self._output.append(f"{client.name}: join waits")

    def _joined(self, client, response):
        error = ErrorCode(response.error_code)
        if error in {ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED}:
            client.member_id = response.member_id
        line = f"{client.name}: join {error.name} member={response.member_id or '-'}"
        if error is ErrorCode.NONE:
            client.generation = response.generation_id
            line += f" generation={response.generation_id} protocol={response.protocol_type}/{response.protocol_name}"
            line += f" leader={response.leader}"
            if response.skip_assignment:
                line += " skip_assignment"
            if response.members:
                line += f" members={','.join(_join_member(member) for member in response.members)}"
        self._output.append(line)

    def _sync(self, names, options):
        client = self._client(names[0])
        assignments = {}
        for part in options.get("assign", "").split(","):
            if part:
                who, _, assignment = part.partition(":")
                assignments[self._client(who).member_id or who] = assignment.encode()
        answer = self._bed.sync(
            options.get("id", client.member_id),
            int(options.get("gen", client.generation)),
            assignments,
            group_id=options.get("group", "g"),
            instance_id=options.get("instance"),
            protocol=options.get("protocol", "range") or None,
            protocol_type=options.get("type", "consumer") or None,
            version=int(options.get("version", "5")),
            turn=False,
            on_response=lambda response: self._synced(client, response),
        )
        if answer.waits:
            self._output.append(f"{client.name}: sync waits")

    def _synced(self, client, response):
        error = ErrorCode(response.error_code)
        line = f"{client.name}: sync {error.name}"
        if error is ErrorCode.NONE:
            line += (
                f" assignment={response.assignment.decode() or '-'} protocol={response.protocol_type}/{response.protocol_name}"
            )
        self._output.append(line)

    def _heartbeat(self, names, options):
        client = self._client(names[0])
        error = self._bed.heartbeat(
            options.get("id", client.member_id),
            int(options.get("gen", client.generation)),
            group_id=options.get("group", "g"),
            instance_id=options.get("instance"),
        )
        self._output.append(f"{client.name}: heartbeat {error.name}")

    def _leave(self, names, options):
        identities = []
        for name in names:
            member_id = "" if name == "-" else options.get("id", self._client(name).member_id)
            identities.append((member_id, options.get("instance"), options.get("reason")))
        response = self._bed.leave(*identities, group_id=options.get("group", "g"))
        if isinstance(response, KafkaError):
            self._output.append(f"leave {response.code.name}")
            return
        answers = [
            f"{member.member_id or member.group_instance_id}={ErrorCode(member.error_code).name}" for member in response.members
        ]
        self._output.append(f"leave {ErrorCode(response.error_code).name} {' '.join(answers)}")

    def _advance(self, names, _):
        self._bed.advance(duration_ms(names[0]))

    def _appends(self, names, _):
        self._bed.log.failure = ErrorCode[names[1]] if names[0] == "fail" else None

    def _commits(self, names, _):
        if names[0] == "wait":
            self._bed.log.held_back = True
        else:
            self._bed.log.hold_back_no_more()

    def _unload(self, *_):
        self._bed.unload()

    def _load(self, *_):
        self._bed.load()

    def _restart(self, *_):
        self._bed.restart()

    def _state(self, names, _):
        group = self._bed.group(names[0] if names else "g")
        if group is None:
            self._output.append("no such group")
            return
        self._output.append(
            f"{group.group_id}: {group.state} generation={group.generation} protocol={group.protocol_type}/{group.protocol}"
            f" leader={group.leader} members={len(group.members)} waiting={group.waiting_joins}"
            f" pending={','.join(group.pending_joins) or '-'} unsynced={','.join(group.pending_syncs) or '-'}"
        )

    def _describe(self, names, options):
        version = int(options.get("version", "6"))
        for name in names:
            group = self._bed.runtime.read(0, lambda shard, offset, name=name: shard.describe_group(name, version, offset))
            protocol = f"{group.protocol_type}/{group.protocol_data}"
            self._output.append(f"{group.group_id}: {ErrorCode(group.error_code).name} {group.group_state} {protocol}")
            for member in group.members:
                self._output.append(
                    f"  {member.member_id} instance={member.group_instance_id} {member.client_id} {member.client_host}"
                    f" metadata={member.member_metadata.decode() or '-'} assignment={member.member_assignment.decode() or '-'}"
                )

    def _list(self, _, options):
        states, types = (tuple(filter(None, options.get(key, "").split(","))) for key in ("states", "types"))
        filters = group_filter(states), group_filter(types)
        for group in finished(self._bed.runtime.read(0, lambda shard, offset: shard.list_groups(*filters, offset))):
            self._output.append(f"{group.group_id}: {group.group_state} {group.protocol_type} {group.group_type}")

    def _delete(self, names, _):
        for name in names:
            results = []
            self._bed.write(lambda shard, name=name: shard.delete_group(name), Answer(results.append).reply)
            (result,) = results
            error = result.code if isinstance(result, KafkaError) else ErrorCode(result.error_code)
            self._output.append(f"{name}: delete {error.name}")


def _shown(value):
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return f'"{value}"' if isinstance(value, str) and " " in value else str(value)


def _join_member(member):
    instance = "" if member.group_instance_id is None else f"@{member.group_instance_id}"
    return f"{member.member_id}{instance}({member.metadata.decode()})"


def _record(record):
    group, value = record.key.group, record.value
    if not isinstance(value, GroupMetadataValue):
        return f"{group}: tombstone"
    members = ",".join(
        f"{member.member_id}{'' if member.group_instance_id is None else '@' + member.group_instance_id}"
        f"({member.subscription.decode()}:{member.assignment.decode()})"
        for member in value.members
    )
    return (
        f"{group}: generation={value.generation} protocol={value.protocol_type or '-'}/{value.protocol} leader={value.leader}"
        f" members={members or '-'}"
    )
