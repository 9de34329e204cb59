"""Topics of a test: made at the start of a broker, or when they are first used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from odradek.common.config.dynamic import ResourceType
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.message_types.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.message_types.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.testing.misuse import checked_name, config_texts

if TYPE_CHECKING:
    from odradek.protocol.message_types.create_topics import CreateTopicsResponse
    from odradek.testing.in_process import InProcessBroker

__tracebackhide__ = True

_CREATE_TOPICS_VERSION = 7
_DESCRIBE_CONFIGS_VERSION = 4
_DEFAULT = -1


class NewTopic(NamedTuple):
    """A topic to be made. Without ``partitions`` it has ``num.partitions`` of them."""

    partitions: int | None = None
    configs: Mapping[str, object] = {}


def checked_topics(topics: object) -> dict[str, int | NewTopic | None]:
    """Return the ``topics`` of a broker. Raises TypeError."""
    if topics is None:
        return {}
    if not isinstance(topics, Mapping):
        names = list(topics) if isinstance(topics, list | tuple | set) else [topics]
        instead = {str(name): 1 for name in names}
        raise TypeError(f"topics must be a dict of names and numbers of partitions: topics={instead!r}, not {topics!r}")
    return {checked_name("topic", name): _checked(name, new) for name, new in topics.items()}


def _checked(name: str, new: object) -> int | NewTopic | None:
    """Return a topic's number of partitions or its ``NewTopic``. Raises TypeError."""
    partitions = new.partitions if isinstance(new, NewTopic) else new
    if partitions is not None and (isinstance(partitions, bool) or not isinstance(partitions, int)):
        raise TypeError(f"topic {name!r} needs a number of partitions, None or NewTopic(partitions, configs), not {partitions!r}")
    if isinstance(new, NewTopic):
        config_texts(new.configs)
        return new
    return partitions


async def create_topics(
    broker: InProcessBroker, topics: Mapping[str, int | NewTopic | None], *, takes_others: bool = False
) -> None:
    """Make the missing topics, each with a number of partitions or as its ``NewTopic`` says.

    Topics that exist stay as they are. Raises KafkaError: TOPIC_ALREADY_EXISTS if one of them differs from the request, unless
    the caller ``takes_others``; otherwise the error of the first topic that is refused.
    """
    known = broker.core.controller.image.topics
    checked = checked_topics(topics)
    asked = [_asked(name, topic) for name, topic in checked.items() if name not in known]
    for name in () if takes_others else checked.keys() & known.keys():
        await _ensure_same(broker, _asked(name, checked[name]))
    if not asked:
        return
    response: CreateTopicsResponse = await broker.ask(
        ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=asked), _CREATE_TOPICS_VERSION
    )
    for topic in response.topics:
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise KafkaError(ErrorCode(topic.error_code), f"topic {topic.name!r}: {topic.error_message}")


async def _ensure_same(broker: InProcessBroker, asked: CreatableTopic) -> None:
    """Raise KafkaError unless the topic has the partitions and configs asked for. Unset ones are not compared."""
    count = len(broker.core.controller.image.topics[asked.name].partitions)
    if asked.num_partitions not in (_DEFAULT, count):
        raise KafkaError(
            ErrorCode.TOPIC_ALREADY_EXISTS,
            f"topic {asked.name!r} already exists: it has {count} partitions, not {asked.num_partitions}",
        )
    wanted = {config.name: config.value for config in asked.configs}
    if not wanted:
        return
    resource = DescribeConfigsResource(ResourceType.TOPIC, asked.name, tuple(wanted))
    request = DescribeConfigsRequest(resources=[resource])
    (described,) = (await broker.ask(ApiKey.DESCRIBE_CONFIGS, request, _DESCRIBE_CONFIGS_VERSION)).results
    found = {config.name: config.value for config in described.configs}
    for name, value in wanted.items():
        if found.get(name) != value:
            raise KafkaError(
                ErrorCode.TOPIC_ALREADY_EXISTS,
                f"topic {asked.name!r} already exists: its {name} is {found.get(name)}, not {value}",
            )


def _asked(name: str, topic: int | NewTopic | None) -> CreatableTopic:
    new = topic if isinstance(topic, NewTopic) else NewTopic(topic)
    return CreatableTopic(
        name=name,
        num_partitions=_DEFAULT if new.partitions is None else new.partitions,
        replication_factor=_DEFAULT,
        configs=[CreatableTopicConfig(config, text) for config, text in config_texts(new.configs).items()],
    )
