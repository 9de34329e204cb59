"""Puts the file of ``odradek serve --init`` into a broker that has started, and before clients are told so.

Only what is missing is made, so a restart with the same file changes nothing. A topic, a user or a quota that exists stays as it
is. Records are written to partitions that never had any, and offsets are committed where a group has none.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from odradek.cli.acls import CLUSTER, WILDCARD, creation_of, resource_named
from odradek.cli.init_file import QUOTA_ENTITIES, QUOTAS, RESOURCES
from odradek.cli.quotas import alter_request, describe_request
from odradek.cli.serve_options import InvalidInitFile
from odradek.cli.users import chosen_mechanisms, salted_credential
from odradek.client.apis import GROUP
from odradek.client.group_offsets import commit_request
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.hashing import partition_for_key
from odradek.protocol.message_types.alter_client_quotas import OpData
from odradek.protocol.message_types.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from odradek.protocol.message_types.create_acls import CreateAclsRequest
from odradek.protocol.message_types.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from odradek.protocol.message_types.find_coordinator import FindCoordinatorRequest
from odradek.protocol.message_types.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from odradek.protocol.scram import MIN_ITERATIONS
from odradek.protocol.texts import decode_base64
from odradek.testing.records import NewTopic, append_records, create_topics, record_of_row

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping
    from pathlib import Path

    from odradek.broker.replica.partition import Partition
    from odradek.cli.init_file import Json
    from odradek.protocol.records import Record
    from odradek.testing.records import TopicMaker

_VERSIONS: Final = {
    ApiKey.ALTER_CLIENT_QUOTAS: 1,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.CREATE_ACLS: 3,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: 1,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.FIND_COORDINATOR: 4,
    # The last ones that name topics.
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
}
_LOADING: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
_LOAD_S: Final = 30.0
_AGAIN_S: Final = 0.01


class InitialState:
    """The content of the file ``path``, for one broker. Loop thread only."""

    def __init__(self, path: Path, content: Json, broker: TopicMaker) -> None:
        self._path = path
        self._content = content
        self._broker = broker

    async def apply(self) -> None:
        """Make all that is missing. Raises InvalidInitFile for a part that the broker refuses, OSError."""
        await self._make_topics()
        await self._make_users()
        await self._make_acls()
        await self._make_quotas()
        await self._write_records()
        await self._commit_offsets()

    async def _ask(self, api_key: ApiKey, request: Any) -> Any:  # noqa: ANN401  any API's messages
        return await self._broker.ask(api_key, request, _VERSIONS[api_key])

    def _refuse(self, key: str, reason: str) -> InvalidInitFile:
        return InvalidInitFile(f"{self._path}: {key}: {reason}")

    def _check(self, key: str, code: int, reason: str | None) -> None:
        if code:
            raise self._refuse(key, f"{ErrorCode(code).name}: {reason or 'refused'}")

    async def _make_topics(self) -> None:
        for name, topic in self._content.get("topics", {}).items():
            new = NewTopic(topic.get("partitions"), topic.get("configs", {})) if isinstance(topic, dict) else topic
            try:
                await create_topics(self._broker, {name: new}, takes_others=True)
            except KafkaError as error:
                raise self._refuse(f"topics.{name}", f"{ErrorCode(error.code).name}: {error.reason}") from error

    async def _make_users(self) -> None:
        users = self._content.get("users", {})
        if not users:
            return
        described = await self._ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, DescribeUserScramCredentialsRequest(users=None))
        self._check("users", described.error_code, described.error_message)
        known = {(each.user, info.mechanism) for each in described.results for info in each.credential_infos}
        for name, user in users.items():
            for mechanism in chosen_mechanisms(user.get("mechanisms", ())):
                if (name, mechanism) in known:
                    continue
                password = self._password(name, user)
                credential = salted_credential(name, mechanism, password, user.get("iterations", MIN_ITERATIONS))
                # A request may alter a user only once.
                request = AlterUserScramCredentialsRequest(upsertions=[credential])
                for result in (await self._ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request)).results:
                    self._check(f"users.{name}", result.error_code, result.error_message)

    def _password(self, name: str, user: Json) -> str:
        if "password" in user:
            return str(user["password"])
        # A relative path begins at the file that names it.
        path = self._path.parent / user["password_file"]
        try:
            password: str = path.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
        except (OSError, UnicodeDecodeError) as error:
            raise self._refuse(f"users.{name}.password_file", str(error)) from error
        if not password:
            raise self._refuse(f"users.{name}.password_file", f"{path}: the first line is empty: write the password there")
        return password

    async def _make_acls(self) -> None:
        for number, acl in enumerate(self._content.get("acls", ())):
            kind, name = "CLUSTER", CLUSTER
            for key in RESOURCES.keys() & acl.keys():
                kind, name = RESOURCES[key], acl[key]
            resource = resource_named(kind, name)
            permission = "ALLOW" if "allow" in acl else "DENY"
            principal, host = acl.get("allow", acl.get("deny")), acl.get("host", WILDCARD)
            creations = [creation_of(resource, permission, principal, host, operation) for operation in acl["operations"]]
            for result in (await self._ask(ApiKey.CREATE_ACLS, CreateAclsRequest(creations))).results:
                self._check(f"acls[{number}]", result.error_code, result.error_message)

    async def _make_quotas(self) -> None:
        for number, quota in enumerate(self._content.get("quotas", ())):
            entity = {key.replace("_", "-"): quota[key] for key in QUOTA_ENTITIES if key in quota}
            described = await self._ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, describe_request(entity, strict=True))
            self._check(f"quotas[{number}]", described.error_code, described.error_message)
            known = {value.key for entry in described.entries or () for value in entry.values}
            ops = [OpData(key, float(quota[key])) for key in QUOTAS if key in quota and key not in known]
            if not ops:
                continue
            for result in (await self._ask(ApiKey.ALTER_CLIENT_QUOTAS, alter_request(entity, ops))).entries:
                self._check(f"quotas[{number}]", result.error_code, result.error_message)

    async def _write_records(self) -> None:
        for name, topic in self._content.get("topics", {}).items():
            rows = topic.get("records", ()) if isinstance(topic, dict) else ()
            partitions = self._broker.core.partitions.of_topic(name)
            for index, records in self._placed(name, rows, len(partitions)).items():
                if partitions[index].require_log().log_end_offset:
                    continue
                try:
                    await append_records(self._broker, name, index, records)
                except KafkaError as error:
                    raise self._refuse(f"topics.{name}.records", f"{ErrorCode(error.code).name}: {error.reason}") from error

    def _placed(self, topic: str, rows: Iterable[Json], partition_count: int) -> dict[int, list[Record]]:
        """Return the records by partition, placed as Kafka's clients place them; without a key, in turns."""
        now_ms = self._broker.core.clock.now_ms()
        turns = count()
        placed: dict[int, list[Record]] = {}
        for number, row in enumerate(rows):
            key = f"topics.{topic}.records[{number}]"
            try:
                fields = (_field(row, "key"), _field(row, "value"), row.get("headers", {}))
                record = record_of_row(fields, now_ms)
            except ValueError as error:
                raise self._refuse(key, str(error)) from error
            index = row.get("partition")
            if index is None:
                index = next(turns) % partition_count if record.key is None else partition_for_key(record.key, partition_count)
            elif index >= partition_count:
                raise self._refuse(f"{key}.partition", f"{index} is not allowed: {topic} has {partition_count}, numbered from 0")
            placed.setdefault(index, []).append(record)
        return placed

    async def _commit_offsets(self) -> None:
        for group, topics in self._content.get("group_offsets", {}).items():
            key = f"group_offsets.{group}"
            # This also creates the coordinator's topic.
            find = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[group])
            await self._ask_coordinator(key, ApiKey.FIND_COORDINATOR, find, lambda response: response.coordinators[0])
            fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
            fetched = await self._ask_coordinator(key, ApiKey.OFFSET_FETCH, fetch, lambda response: response.groups[0])
            committed = {(topic.name, each.partition_index) for topic in fetched.topics for each in topic.partitions}
            missing: dict[tuple[str, int], int] = {}
            for topic, offsets in topics.items():
                missing |= self._missing(f"{key}.{topic}", topic, offsets, committed)
            if not missing:
                continue
            for topic in (await self._ask(ApiKey.OFFSET_COMMIT, commit_request(group, missing))).topics:
                for partition in topic.partitions:
                    self._check(f"{key}.{topic.name}.{partition.partition_index}", partition.error_code, None)

    async def _ask_coordinator(
        self,
        key: str,
        api_key: ApiKey,
        request: Any,  # noqa: ANN401  any API's messages
        outcome_of: Callable[[Any], Any],
    ) -> Any:  # noqa: ANN401
        """Return the outcome, with an error code, once the coordinator has loaded. Raises InvalidInitFile."""
        try:
            async with asyncio.timeout(_LOAD_S):
                # Nothing tells a client that a coordinator has loaded.
                while (outcome := outcome_of(await self._ask(api_key, request))).error_code in _LOADING:  # noqa: ASYNC110
                    await asyncio.sleep(_AGAIN_S)
        except TimeoutError as error:
            raise self._refuse(key, f"the group's coordinator has not loaded within {_LOAD_S:.0f} s") from error
        self._check(key, outcome.error_code, None)
        return outcome

    def _missing(
        self, key: str, topic: str, offsets: Mapping[str, int | str], committed: Container[tuple[str, int]]
    ) -> dict[tuple[str, int], int]:
        """Return the offsets of the partitions for which the group has none."""
        partitions = self._broker.core.partitions.of_topic(topic)
        if not partitions:
            raise self._refuse(key, f"there is no topic {topic!r}; name it under topics")
        found = {}
        for text, offset in offsets.items():
            index = int(text)
            if index not in partitions:
                raise self._refuse(f"{key}.{text}", f"there is no such partition: {topic} has {len(partitions)}, numbered from 0")
            if (topic, index) not in committed:
                found[topic, index] = _offset(partitions[index], offset)
        return found


def _offset(partition: Partition, offset: int | str) -> int:
    match offset:
        case "earliest":
            return partition.require_log().log_start_offset
        case "latest":
            return partition.high_watermark
        case _:
            return int(offset)


def _field(row: Json, name: str) -> object:
    """Return a record's key or value. Raises ValueError for bytes that are not base64."""
    if f"{name}_base64" in row:
        try:
            return decode_base64(row[f"{name}_base64"])
        except ValueError as error:
            raise ValueError(f"{name}_base64: {row[f'{name}_base64']!r} is not base64: {error}") from error
    return row.get(name)
