"""The scenarios of consumer groups: what members do, and all that comes of it. Their form: tests/coordinator/scenario_files.py.

    topic NAME PARTITIONS | drop NAME          makes a topic or adds partitions | deletes it
    config KEY=VALUE ...                       changes configs of consumer groups, written with underscores
    beat WHO [epoch=] [names=A,B] [regex=] [instance=] [rebalance=] [owns=A:0.1,B:2 | owns=all | owns=]
    leave WHO [instance=]  pause WHO instance=   epochs -1 and -2
    advance DURATION | appends fail ERROR | restart | describe [GROUP]

WHO is a member id; a beat has the epoch that the member was told last, 0 at first. ``owns=all`` reports what it was told last.
"""

from __future__ import annotations

import shlex

from odradek.protocol.coordinator_records import encode_key, encode_value
from odradek.protocol.coordinator_records.newer_groups import decode_newer
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.group.consumer_bed import ConsumerBed
from tests.coordinator.long_work import finished
from tests.coordinator.scenario_files import duration_ms


class ConsumerScenario:
    def __init__(self):
        self._bed = ConsumerBed(assignment_interval_ms=0)
        self._epochs = {}
        self._told = {}

    def run(self, command):
        name, *words = shlex.split(command)
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        output = list(getattr(self, f"_{name}")(names, options) or ())
        self._bed.turn()
        output += [*(f"  written {line}" for line in self._written()), *(f"FAULT {each}" for each, _ in self._bed.faults)]
        self._bed.faults.clear()
        return output

    def _written(self):
        for record in self._bed.records():
            yield self._record(record)

    def _record(self, record):
        found = decode_newer(encode_key(record.key), None if record.value is None else encode_value(record.value))
        key = " ".join(found.key.values())
        kind = found.kind.removeprefix("consumer_group_")
        return f"{kind} {key}: " + ("tombstone" if found.value is None else _shown(found.value))

    def _topic(self, names, _):
        self._bed.topic(names[0], int(names[1]))

    def _drop(self, names, _):
        self._bed.drop_topic(names[0])

    def _config(self, _, options):
        self._bed.group_config = self._bed.group_config._replace(**{key: int(value) for key, value in options.items()})

    def _beat(self, names, options):
        who = names[0]
        epoch = int(options.get("epoch", self._epochs.get(who, 0)))
        fields = {"instance_id": options.get("instance")}
        if "names" in options:
            fields["subscribed_topic_names"] = options["names"].split(",")
        if "regex" in options:
            fields["subscribed_topic_regex"] = options["regex"]
        if "rebalance" in options:
            fields["rebalance_timeout_ms"] = duration_ms(options["rebalance"])
        owned = None
        if options.get("owns") == "all":
            owned = self._told.get(who, {})
        elif "owns" in options:
            pairs = [part.split(":") for part in options["owns"].split(",") if part]
            owned = {topic: [int(each) for each in indexes.split(".")] for topic, indexes in pairs}
        yield self._answer(who, self._bed.beat(who, epoch, owned=owned, **fields))

    def _answer(self, who, answer):
        if isinstance(answer, KafkaError):
            return f"{who}: {answer.code.name}"
        self._epochs[who] = answer.member_epoch
        line = f"{who}: epoch={answer.member_epoch}"
        if answer.assignment is not None:
            name_of = self._bed.topics.name_of
            told = {name_of(each.topic_id): list(each.partitions) for each in answer.assignment.topic_partitions}
            self._told[who] = {name: each for name, each in told.items() if name is not None}
            line += f" assignment={shown_partitions(told)}"
        return line

    def _leave(self, names, options):
        yield self._gone(names[0], -1, options)

    def _pause(self, names, options):
        yield self._gone(names[0], -2, options)

    def _gone(self, who, epoch, options):
        answer = self._bed.beat(who, epoch, instance_id=options.get("instance"))
        if isinstance(answer, KafkaError):
            return f"{who}: {answer.code.name}"
        self._epochs.pop(who, None)
        return f"{who}: gone with {answer.member_epoch}"

    def _advance(self, names, _):
        self._bed.advance(duration_ms(names[0]))

    def _appends(self, names, _):
        self._bed.log.failures.append(KafkaError(ErrorCode[names[1]]))

    def _restart(self, *_):
        self._bed.restart()

    def _describe(self, names, _):
        group_id = names[0] if names else "g"
        try:
            group = self._bed.runtime.read(0, lambda shard, offset: finished(shard.describe_consumer_group(group_id, offset)))
        except KafkaError as error:
            yield f"{group_id}: {error.code.name}"
            return
        epochs = f"epoch={group.group_epoch} assignment={group.assignment_epoch}"
        yield f"{group_id}: {group.group_state} {epochs} {group.assignor_name}"
        for member in group.members:
            has, target = (
                shown_partitions({each.topic_name: each.partitions for each in told.topic_partitions})
                for told in (member.assignment, member.target_assignment)
            )
            instance = "" if member.instance_id is None else f"@{member.instance_id}"
            yield f"  {member.member_id}{instance} epoch={member.member_epoch} has={has} target={target}"


def shown_partitions(by_topic):
    return ",".join(f"{name}:{'.'.join(map(str, indexes))}" for name, indexes in sorted(by_topic.items())) or "-"


def _shown(value):
    if isinstance(value, dict):
        return " ".join(f"{name}={_shown(each)}" for name, each in value.items() if name != "metadata_hash")
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return str(value)
