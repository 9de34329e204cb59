"""A client for the commands: one request at a time over plain sockets, against any broker that speaks Kafka's protocol.

A request is a dictionary of fields under our names for them (``protocol.schemas``), sent in the newest version that the broker
and ``SPOKEN`` have in common; fields that this version lacks are left out, those not named have Kafka's default. A response is
what kio decodes, with times in milliseconds. The versions in ``SPOKEN`` are those that say what the commands need in one shape.

Left out: TLS, SASL, pipelining.
"""

import socket
import struct
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import click

from odradek.cli.refusals import Unreachable, check
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import skip_tagged_fields
from odradek.protocol.schemas import field_specs, load
from odradek.protocol.writers import Write, compile_writer

SPOKEN = {
    ApiKey.LIST_OFFSETS: (1, 10),
    ApiKey.METADATA: (4, 13),
    # By topic name and for one group: later versions name topics by id, and several groups.
    ApiKey.OFFSET_COMMIT: (2, 9),
    ApiKey.OFFSET_FETCH: (2, 7),
    ApiKey.FIND_COORDINATOR: (1, 3),
    ApiKey.DESCRIBE_GROUPS: (0, 6),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.API_VERSIONS: (0, 0),
    ApiKey.INIT_PRODUCER_ID: (2, 5),
    ApiKey.WRITE_TXN_MARKERS: (1, 2),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 2),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 5),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1),
}
_HEADER = struct.Struct(">hhih")
_CLIENT_ID = b"odradek-cli"
_TIMEOUT_S = 10.0
_MAX_RESPONSE_BYTES = 256 * 1024 * 1024


class Connection:
    """One broker. Raises Unreachable for whatever goes wrong between here and there."""

    def __init__(self, host: str, port: int) -> None:
        self._address = f"{host}:{port}"
        self._correlation_id = 0
        try:
            self._socket = socket.create_connection((host, port), _TIMEOUT_S)
            self._answers = self._socket.makefile("rb")
        except OSError as failure:
            raise Unreachable(f"no broker answers at {self._address}: {_reason(failure)}") from failure
        try:
            served = self._exchange(ApiKey.API_VERSIONS, 0, {})
            check(self._address, served.error_code)
        except click.ClickException:
            self.close()
            raise
        self._served = {int(api.api_key): (api.min_version, api.max_version) for api in served.api_keys}

    def close(self) -> None:
        """Close it."""
        self._answers.close()
        self._socket.close()

    def serves(self, api_key: ApiKey, version: int = 0) -> bool:
        """Whether the broker has the API in a version that is spoken here, this one or a later one."""
        common = self._common_version(api_key)
        return common is not None and common >= version

    def call(self, api_key: ApiKey, **fields: Any) -> Any:
        """One request, one response. Raises Unreachable where no version is common to both."""
        version = self._common_version(api_key)
        if version is None:
            lowest, highest = SPOKEN[api_key]
            raise Unreachable(f"the broker at {self._address} has no {api_key.name} in versions {lowest} to {highest}")
        return self._exchange(api_key, version, fields)

    def _common_version(self, api_key: ApiKey) -> int | None:
        lowest, highest = self._served.get(api_key, (0, -1))
        version = min(highest, SPOKEN[api_key][1])
        return version if version >= max(lowest, SPOKEN[api_key][0]) else None

    def _exchange(self, api_key: ApiKey, version: int, fields: dict[str, Any]) -> Any:
        self._correlation_id += 1
        try:
            self._socket.sendall(encode_request(api_key, version, self._correlation_id, fields))
            size = int.from_bytes(self._read(4), "big", signed=True)
            if not 4 <= size <= _MAX_RESPONSE_BYTES:
                raise Unreachable(f"what answers at {self._address} is not a Kafka broker")
            frame = self._read(size)
        except OSError as failure:
            raise Unreachable(f"the broker at {self._address} did not answer {api_key.name}: {_reason(failure)}") from failure
        try:
            return _decode_response(api_key, version, frame, self._correlation_id)
        except Exception as failure:
            reason = f"the answer of {self._address} to {api_key.name} cannot be read: {failure}"
            raise Unreachable(reason) from failure

    def _read(self, size: int) -> bytes:
        data = self._answers.read(size)
        if len(data) < size:
            raise ConnectionResetError("it closed the connection")
        return data


def encode_request(api_key: ApiKey, version: int, correlation_id: int, fields: dict[str, Any]) -> bytes:
    """A whole frame, length included."""
    entity = load(api_key, version, "request")
    write = _writer(api_key, version)
    header = _HEADER.pack(api_key, version, correlation_id, len(_CLIENT_ID)) + _CLIENT_ID
    chunks = [header + b"\0" if entity.__flexible__ else header]
    try:
        write(chunks.append, _message(entity, fields))
    except (struct.error, OverflowError) as failure:
        raise Unreachable(f"{api_key.name} cannot say that: {failure}") from failure
    body = b"".join(chunks)
    return len(body).to_bytes(4, "big") + body


@cache
def _writer(api_key: ApiKey, version: int) -> Write:
    return compile_writer(load(api_key, version, "request"), {})


def _message(entity: type[Any], fields: dict[str, Any]) -> Any:
    """An object with every field of ``entity``, one of kio's classes: those given, and Kafka's defaults."""
    values = {}
    for spec in field_specs(entity):
        value = fields.get(spec.name, spec.default)
        if spec.entity is not None and isinstance(value, list):
            value = [_message(spec.entity, item) for item in value]
        values[spec.name] = value
    return SimpleNamespace(**values)


def _decode_response(api_key: ApiKey, version: int, frame: bytes, correlation_id: int) -> Any:
    if int.from_bytes(frame[:4], "big", signed=True) != correlation_id:
        raise ValueError("it is the answer to something else")
    entity = load(api_key, version, "response")
    position = 4
    if entity.__flexible__ and api_key != ApiKey.API_VERSIONS:
        position = skip_tagged_fields(frame, position)
    response, _ = _reader(api_key, version)(frame, position)
    return response


@cache
def _reader(api_key: ApiKey, version: int) -> Callable[[bytes, int], tuple[Any, int]]:
    from kio.serial import entity_reader

    from odradek.cli.plain_times import with_plain_times

    return entity_reader(with_plain_times(load(api_key, version, "response")))


def _reason(failure: OSError) -> str:
    return failure.strerror or str(failure) or type(failure).__name__
