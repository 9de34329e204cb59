"""Members of share groups: confluent-kafka's ShareConsumer. Its calls must not block the broker's loop."""

import asyncio
from contextlib import asynccontextmanager, contextmanager

from confluent_kafka import ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

TOPIC, GROUP = "mails", "senders"
WITHIN_S = 30


def set_group_configs(servers, **configs):
    """Set configs of the group: ``share_auto_offset_reset`` and the like. Without any, it begins at the first record."""
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in {"share_auto_offset_reset": "earliest", **configs}.items()
    ]
    resource = ConfigResource(ConfigResource.Type.GROUP, GROUP, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": servers})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(WITHIN_S)


@contextmanager
def share_consumer(servers, client_id="member"):
    """A member that acknowledges explicitly."""
    consumer = _member(servers, client_id)
    try:
        yield consumer
    finally:
        consumer.close()


@asynccontextmanager
async def share_consumer_beside(broker, client_id="member"):
    """The same, of a broker on this loop."""
    consumer = _member(broker.bootstrap_servers, client_id)
    try:
        yield consumer
    finally:
        await asyncio.to_thread(consumer.close)


def _member(servers, client_id):
    names = {"bootstrap.servers": servers, "group.id": GROUP, "client.id": client_id}
    consumer = ShareConsumer({**names, "share.acknowledgement.mode": "explicit", "log_level": 0})
    consumer.subscribe([TOPIC])
    return consumer


def polled(consumer):
    """The messages of the first poll that has some."""
    for _ in range(WITHIN_S):
        messages = list(consumer.poll(1.0))
        if messages:
            assert [message.error() for message in messages] == [None] * len(messages)
            return messages
    raise AssertionError(f"no message within {WITHIN_S} s")
