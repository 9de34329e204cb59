"""A share group with two members, which accept, release and reject what they get, as a seed draws."""

from random import Random
from typing import Final

from confluent_kafka import AcknowledgeType, Producer, ShareConsumer

from odradek.protocol.api_keys import ApiKey
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.raw_client import RawClient
from tests.share_consumers import GROUP, TOPIC, set_group_configs

# Members are not polled while the pipeline reads, which takes more than the default's five minutes on a busy machine.
PATIENT: Final = {"max.poll.interval.ms": 3_600_000}
_POLL_S: Final = 0.1
_MOST_MAILS: Final = 5
_ANSWERS: Final = (AcknowledgeType.ACCEPT, AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT)


class SharingLife:
    """The members, until ``close``. The topic is there."""

    def __init__(self, address: str, random: Random) -> None:
        self._random = random
        self._producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
        set_group_configs(address)
        names = {"bootstrap.servers": address, "group.id": GROUP, "share.acknowledgement.mode": "explicit", "log_level": 0}
        self._members = [ShareConsumer({**names, **PATIENT, "client.id": f"sender-{number}"}) for number in range(2)]
        for member in self._members:
            member.subscribe([TOPIC])

    def begin(self) -> None:
        """Wait until a member has had a mail."""
        until(self.step)

    def step(self) -> bool:
        """Send mails, and let each member poll once; whether one had any."""
        for _ in range(self._random.randint(1, _MOST_MAILS)):
            self._producer.produce(TOPIC, "a mail")
        self._producer.flush()
        had_mails = [self._poll(member) for member in self._members]
        return any(had_mails)

    def close(self) -> None:
        """Leave the group. Mails that nobody has answered go back."""
        for member in self._members:
            member.close()

    def _poll(self, member: ShareConsumer) -> bool:
        mails = list(member.poll(_POLL_S))
        for mail in mails:
            member.acknowledge(mail, self._random.choice(_ANSWERS))
        if mails:
            member.commit_sync()
        return bool(mails)


def start_offsets(address: str) -> dict[tuple, int]:
    """The start offsets of the group's share partitions, as the broker tells them, by group, topic and partition."""
    host, _, port = address.rpartition(":")
    with RawClient(host, int(port)) as client:
        group = client.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=[{"group_id": GROUP, "topics": None}]).groups[0]
    assert group.error_code == 0
    return {
        (GROUP, topic.topic_name, each.partition_index): each.start_offset for topic in group.topics for each in topic.partitions
    }
