"""A whole broker in process for the tests of handlers: in memory, under a clock that stands still, without threads or network."""

from odradek.broker.api import SERVED
from odradek.common.context import RequestContext, Session
from odradek.controller.metadata.decisions import NewTopic
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.broker_codecs import response_encoder
from odradek.protocol.messages import messages
from odradek.protocol.records import Record, build_batch
from odradek.testing import SocketlessBroker
from odradek.timing.clock import VirtualClock
from odradek.timing.reply import Reply


def make_broker(*topics, **overrides):
    """The core of a broker of node id 1 with ``topics``, whose listener is at 127.0.0.1:9999.

    ``overrides`` are configs, with ``_`` for dots.
    """
    configs = {"listeners": "PLAINTEXT://127.0.0.1:9999"} | {name.replace("_", "."): value for name, value in overrides.items()}
    in_process = SocketlessBroker(configs=configs, clock=VirtualClock(), background="inline", seed=1)
    in_process.start_now()
    for name in topics:
        create(in_process.core, name)
    return in_process.core


def create(broker, name, partition_count=1, *configs, records=0):
    """A topic with ``records`` records in partition 0; returns it as the image has it."""
    (result,) = broker.controller.create_topics([NewTopic(name=name, partition_count=partition_count, configs=configs)]).response
    assert result.error is None
    topic = broker.controller.image.topics[name]
    for _ in range(records):
        broker.partitions.get(name, 0).append(build_batch([Record(timestamp=0, value=b"v")]), broker.clock.now_ms())
    return topic


def ask(broker, api_key, version=None, **fields):
    """The answer to a request of ``version``, the newest served by default; it can be encoded in the older ones, too."""
    served = SERVED[api_key]
    version = served.max_version if version is None else version
    context = RequestContext(api_key, version, 7, "client", Session("PLAINTEXT", ("127.0.0.1", 1)))
    response = broker.dispatcher.call(context, messages(api_key).request(**fields))
    if isinstance(response, Reply):
        assert response.done
        response = response.response
    for each in range(oldest_version(api_key, version), served.max_version + 1):
        assert response_encoder(api_key, each)(7, response)
    return response


def oldest_version(api_key, version):
    """The oldest version in which the answer to a request of ``version`` can be said."""
    # One key in, one out before version 4 of FindCoordinator; a topic without a name only in version 6 of DeleteTopics.
    first_of_shape = {ApiKey.FIND_COORDINATOR: 4, ApiKey.DELETE_TOPICS: 6}.get(api_key, 0)
    return first_of_shape if version >= first_of_shape > 0 else SERVED[api_key].min_version
