"""Messages as a timeline keeps them, independent of the frame and the log slices that they came from; and as JSON, and back.

They are the canonical messages of ``odradek.protocol.messages``, with one exception. The broker keeps a Produce request as
plain tuples. Here it is a ``Produce``, so that all messages are named tuples of fields. If a timeline keeps no records,
``OmittedRecords`` stands for them.

In JSON a struct is an object of its fields, bytes are base64, a UUID is Kafka's text of 22 characters. The type of a field says
how to read its value. Missing fields have their defaults; an unknown field is an error. Secrets are left out.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.client_codecs import response_decoder
from odradek.protocol.errors import ErrorCode, MalformedMessage, error_of
from odradek.protocol.messages import SECRETS, load, messages
from odradek.protocol.produce_request import ProduceRequest
from odradek.protocol.record_batch import iter_batches
from odradek.protocol.texts import decode_base64, encode_base64, parse_uuid, uuid_text

__tracebackhide__ = True

_LENGTH_BYTES = 4

# Answers with slices of logs, which nobody can read once the broker has ended.
_WITH_SLICES = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})


class OmittedRecords(NamedTuple):
    """A placeholder for records, with their size in bytes."""

    size_bytes: int


class ProducePartition(NamedTuple):
    """One partition of a ``Produce``."""

    index: int = 0  # type: ignore[assignment]
    records: bytes | OmittedRecords | None = None


class ProduceTopic(NamedTuple):
    """One topic of a ``Produce``: by name, or from version 13 on by id."""

    name: str = ""
    topic_id: UUID | None = None
    partition_data: Sequence[ProducePartition] = ()


class Produce(NamedTuple):
    """A Produce request."""

    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: Sequence[ProduceTopic] = ()


class SentBytes(NamedTuple):
    """A response as a frame without its length, because its handler wrote bytes or it has slices of logs."""

    data: bytes


def request_class(api: ApiKey) -> type[Any]:
    """Return the class of an API's requests in a timeline."""
    return Produce if api == ApiKey.PRODUCE else messages(api).request


def held_request(request: Any, *, keeps_records: bool) -> Any:
    """Return the request with its own copy of the bytes."""
    if not isinstance(request, ProduceRequest):
        return request
    return Produce(
        request.transactional_id,
        request.acks,
        request.timeout_ms,
        tuple(
            ProduceTopic(
                topic if isinstance(topic, str) else "",
                UUID(bytes=topic) if isinstance(topic, bytes) else None,
                tuple(ProducePartition(index, _records(records, keeps=keeps_records)) for index, records in partitions),
            )
            for topic, partitions in request.topics
        ),
    )


def sendable_request(request: Any) -> Any:
    """Return a held request as ``request_encoder`` takes it. Raises ValueError if its records were omitted."""
    if not isinstance(request, Produce):
        return request
    if any(isinstance(partition.records, OmittedRecords) for topic in request.topic_data for partition in topic.partition_data):
        raise ValueError("this timeline has no record data: it was recorded without records")
    topics = [
        (topic.topic_id.bytes if topic.topic_id else topic.name, [tuple(partition) for partition in topic.partition_data])
        for topic in request.topic_data
    ]
    return ProduceRequest(request.transactional_id, request.acks, request.timeout_ms, topics)  # type: ignore[arg-type]


def held_answer(api: ApiKey, version: int, response: Any, *, keeps_records: bool) -> Any:
    """Return the response with its own copy of the bytes; ``sent_answer`` decodes it."""
    if isinstance(response, bytes):
        # The decoder expects a header, and ignores its content.
        is_tagged = load(api, version, "response").flexible and api != ApiKey.API_VERSIONS
        return SentBytes(bytes(5 if is_tagged else 4) + response)
    if api not in _WITH_SLICES:
        return response
    if keeps_records:
        chunks = response_encoder(api, version)(0, response)
        return SentBytes(b"".join(map(_read, chunks))[_LENGTH_BYTES:])
    return response._replace(
        responses=tuple(
            topic._replace(
                partitions=tuple(
                    partition._replace(records=OmittedRecords(len(partition.records)))
                    if partition.records is not None
                    else partition
                    for partition in topic.partitions
                )
            )
            for topic in response.responses
        )
    )


def sent_answer(api: ApiKey, version: int, held: Any) -> Any:
    """Return the answer as the client can read it: fields that its version lacks have their defaults."""
    if isinstance(held, SentBytes):
        return response_decoder(api, version)(held.data)
    if any(isinstance(value, OmittedRecords) for _, value in fields_of(held)):
        return held
    try:
        chunks = response_encoder(api, version)(0, held)
        return response_decoder(api, version)(b"".join(map(_read, chunks))[_LENGTH_BYTES:])
    except MalformedMessage:
        return held


def frozen(value: Any) -> Any:
    """Return a message with tuples instead of lists, which in-process calls may have."""
    if hasattr(value, "_fields"):
        return type(value)(*map(frozen, value))
    return tuple(map(frozen, value)) if isinstance(value, tuple | list) else value


def fields_of(message: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (name, value) of every field of a message and of its structs. A struct's own fields come before those inside it."""
    inner: list[Any] = []
    for name, value in zip(message._fields, message, strict=True):
        yield name, value
        if isinstance(value, tuple | list) and not isinstance(value, OmittedRecords):
            inner += [value] if hasattr(value, "_fields") else value
    for struct in inner:
        if hasattr(struct, "_fields"):
            yield from fields_of(struct)


def structs_of(message: Any) -> Iterator[Any]:
    """Yield the message and every struct in it."""
    yield message
    for value in message:
        for each in (value,) if hasattr(value, "_fields") else value if isinstance(value, tuple | list) else ():
            if hasattr(each, "_fields"):
                yield from structs_of(each)


def error_codes(answer: Any) -> list[ErrorCode]:
    """Return the errors in an answer, each once."""
    found = (value for name, value in fields_of(answer) if name.endswith("error_code") and value)
    return [error_of(code) for code in dict.fromkeys(found)]


def record_count(records: Any) -> int:
    """Return how many records the batches of a field have."""
    try:
        return sum(header.record_count for _, header in iter_batches(bytes(records)))
    except (MalformedMessage, KeyError, IndexError, ValueError):
        return 0


def _records(records: Any, *, keeps: bool) -> Any:
    if records is None:
        return None
    return bytes(records) if keeps else OmittedRecords(len(records))


def _read(chunk: Any) -> Any:
    return chunk if isinstance(chunk, bytes | memoryview) else chunk.read()


def to_json(value: Any) -> Any:
    """Return a message as dictionaries, lists, texts, numbers, booleans and None."""
    if hasattr(value, "_fields"):
        secrets = SECRETS.get(type(value).__name__, ())
        return {name: to_json(inner) for name, inner in zip(value._fields, value, strict=True) if name not in secrets}
    if isinstance(value, tuple | list):
        return [to_json(inner) for inner in value]
    if isinstance(value, bytes | memoryview):
        return encode_base64(value)
    if isinstance(value, UUID):
        return uuid_text(value)
    return value


def from_json(message_class: type[Any], value: Any) -> Any:
    """Return a message of this class. Raises ValueError."""
    try:
        hint: Any = message_class
        return _reader(hint)(value)
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"not a valid {message_class.__name__}: {error}") from error


@cache
def _reader(hint: Any) -> Callable[[Any], Any]:
    """Return the function that reads a value of this type from JSON."""
    if hasattr(hint, "_fields"):
        return _struct_reader(hint)
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _union_reader([each for each in get_args(hint) if each is not NoneType])
    if origin is not None:
        read_item = _reader(get_args(hint)[0])
        return lambda value: tuple(read_item(item) for item in value)
    if hint is UUID:
        return parse_uuid
    if hint in (int, str, bool, float):
        return lambda value: value
    # Records: bytes, or another sized type.
    return _read_bytes


def _struct_reader(struct: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(struct)
    readers = {name: _reader(hints[name]) for name in struct._fields}
    return lambda value: struct(**{name: readers[name](inner) for name, inner in value.items()})


def _union_reader(hints: list[Any]) -> Callable[[Any], Any]:
    read = _reader(bytes if OmittedRecords in hints else hints[0])
    return lambda value: None if value is None else read(value)


def _read_bytes(value: Any) -> bytes | OmittedRecords:
    return OmittedRecords(**value) if isinstance(value, dict) else decode_base64(value)
