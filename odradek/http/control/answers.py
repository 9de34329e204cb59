"""The answers of the control API. The handlers return these types, and the OpenAPI description is made from them.

A docstring is the description of its type. Bytes that are no UTF-8 are in a field named ``..._base64`` in place of the text.
"""

from typing import Any, NotRequired, TypedDict


class Done(TypedDict):
    """The request was carried out. There is nothing to tell."""


class Error(TypedDict):
    """A refusal. ``code`` is the name of Kafka's error, if Kafka refuses the request."""

    error: str
    code: NotRequired[str]


class BrokerState(TypedDict):
    """The broker's address for clients, and whether it runs."""

    bootstrap_servers: str
    is_running: bool


class Partition(TypedDict):
    """A partition of a topic."""

    topic: str
    partition: int


class PartitionOffsets(TypedDict):
    """The offsets of a partition. The end offset is the high watermark, and counts transaction markers, too."""

    partition: int
    start_offset: int
    end_offset: int


class Topic(TypedDict):
    """A topic."""

    name: str
    partitions: list[PartitionOffsets]


class Topics(TypedDict):
    """All topics, without the coordinators' own."""

    topics: list[Topic]


class Header(TypedDict):
    """A header of a record."""

    name: str
    value: NotRequired[str | None]
    value_base64: NotRequired[str]


class Record(TypedDict):
    """A record in its partition. The timestamp is in milliseconds since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: NotRequired[str | None]
    key_base64: NotRequired[str]
    value: NotRequired[str | None]
    value_base64: NotRequired[str]
    headers: list[Header]


class Records(TypedDict):
    """Records, partition by partition."""

    records: list[Record]


class Member(TypedDict):
    """A member of a group, with its assigned partitions."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: list[Partition]


class GroupPartition(TypedDict):
    """A partition that a group reads: the committed offset, if there is one, and the records after it."""

    topic: str
    partition: int
    offset: int | None
    lag: int


class InFlightRecords(TypedDict):
    """Consecutive records that a share group has in flight, in one state: ACQUIRED, AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED.

    ACQUIRED records have a holder, and the milliseconds until its lock expires. The delivery count includes the present delivery.
    """

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    state: str
    delivery_count: int
    member_id: str | None
    client_id: str | None
    lock_left_ms: int | None


class StreamsTask(TypedDict):
    """A task of a streams group, with the ids of the members that have it.

    ``moves_to`` is the member that is to be active, if that is another than ``active``.
    """

    subtopology_id: str
    partition: int
    active: str | None
    standby: list[str]
    warmup: list[str]
    moves_to: str | None


class Group(TypedDict):
    """A group. Its lag is that of all its partitions together.

    The offsets of a share group are its start offsets. Records acknowledged are those that its members have accepted since the
    broker last started. Only a streams group has tasks.
    """

    group_id: str
    type: str
    state: str
    protocol: str
    members: list[Member]
    partitions: list[GroupPartition]
    lag: int
    acknowledged: int
    in_flight: list[InFlightRecords]
    tasks: list[StreamsTask]


class Groups(TypedDict):
    """All groups."""

    groups: list[Group]


class Transaction(TypedDict):
    """A transactional id, and the state of its transaction."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    partitions: list[Partition]


class Transactions(TypedDict):
    """All transactional ids."""

    transactions: list[Transaction]


class ClockState(TypedDict):
    """The broker's time in milliseconds since the epoch, and how fast it passes."""

    now_ms: int
    is_frozen: bool
    speed: float


class LogLine(TypedDict):
    """A line of the broker's log."""

    level: str
    text: str


class LogLines(TypedDict):
    """The latest lines of the broker's log, the newest last."""

    lines: list[LogLine]


class Fired(TypedDict):
    """One firing of a rule: the request or the file that it met. ``action`` is null if the rule only observes."""

    rule: str
    action: str | None
    api: str
    client_id: str | None
    group: str | None
    transactional_id: str | None
    topics: list[str]


class Fault(TypedDict):
    """A rule of faults, by its number, and how often it has fired."""

    fault: str
    rule: str
    hits: int
    fired: list[Fired]


class Faults(TypedDict):
    """All rules of the broker."""

    faults: list[Fault]


class Snapshot(TypedDict):
    """The number of a snapshot."""

    snapshot: str


class Fork(TypedDict):
    """A broker that was started from a snapshot, by its number."""

    fork: str
    bootstrap_servers: str


class Forks(TypedDict):
    """All forks."""

    forks: list[Fork]


class Event(TypedDict):
    """An event of the timeline: a client's request and its answer, or a ``decision`` of the broker.

    Requests and answers have the fields of Kafka's messages.
    """

    begun: int
    at_ms: float
    connection: NotRequired[int]
    client_id: NotRequired[str | None]
    api: NotRequired[str]
    version: NotRequired[int]
    correlation_id: NotRequired[int]
    request: NotRequired[dict[str, Any]]
    outcome: NotRequired[str]
    answer: NotRequired[dict[str, Any] | None]
    ended: NotRequired[int | None]
    took_ms: NotRequired[float | None]
    decision: NotRequired[str]
    about: NotRequired[dict[str, Any]]


class Timeline(TypedDict):
    """The recorded timeline, as events and as text."""

    events: list[Event]
    text: str


class Point(TypedDict):
    """A value that a client measured. A histogram has ``count``, ``sum``, ``bounds`` and ``counts`` in place of ``value``."""

    metric: str
    kind: str
    attributes: dict[str, Any]
    value: NotRequired[float | None]
    count: NotRequired[int]
    sum: NotRequired[float]
    bounds: NotRequired[list[float]]
    counts: NotRequired[list[int]]


class Push(TypedDict):
    """The values that a client has pushed at once."""

    client_id: str | None
    client_instance_id: str
    software: str
    time_ms: int
    is_terminating: bool
    points: list[Point]


class ClientPushes(TypedDict):
    """The metrics that clients have pushed, in order."""

    pushes: list[Push]
