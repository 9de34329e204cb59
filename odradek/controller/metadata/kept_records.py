"""Registrations of nodes, access control entries, credentials and delegation tokens, kept as the original records.

Replay keeps only the current records. A snapshot carries them on, so that an Apache Kafka that opens the directory later finds
them. Brokers act on the registrations, a broker with an authorizer on the entries, SASL listeners on the others (``sasl.scram``).
Changes of partitions apply to the image's partitions, as in Kafka's ``PartitionRegistration.merge``, and client quotas to its
quotas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.metadata_records.base import NO_LEADER_CHANGE, NO_RECOVERY_STATE_CHANGE
from odradek.protocol.metadata_records.log_control import NoOpRecord, ZkMigrationStateRecord
from odradek.protocol.metadata_records.nodes import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from odradek.protocol.metadata_records.partition_changes import ClearElrRecord, PartitionChangeRecord
from odradek.protocol.metadata_records.security import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from uuid import UUID

    from odradek.controller.metadata.client_quotas import ClientQuotas
    from odradek.controller.metadata.delta import MetadataDelta
    from odradek.controller.metadata.topic import Topic
    from odradek.protocol.metadata_records import MetadataRecord, PartitionRecord

# The fields that identify a record of a type, and the type that a removing record applies to.
_KEYS: Final[dict[type[Any], tuple[str, ...]]] = {
    RegisterControllerRecord: ("controller_id",),
    UserScramCredentialRecord: ("name", "mechanism"),
    ZkMigrationStateRecord: (),
}
_REMOVES: Final[dict[type[Any], type[Any]]] = {
    RemoveUserScramCredentialRecord: UserScramCredentialRecord,
    UnregisterControllerRecord: RegisterControllerRecord,
}


class ImageTopics(Protocol):
    """The topics of an image, whose partitions change here, and its client quotas."""

    @property
    def topics(self) -> Mapping[str, Topic]:
        """Return the topics by name."""
        ...

    @property
    def quotas(self) -> ClientQuotas:
        """Return the client quotas."""
        ...

    def topic(self, topic_id: UUID) -> Topic:
        """Return the topic of an id. Raises MalformedMessage if there is none."""
        ...


class KeptRecords:
    """The kept records: ``brokers`` by broker id, ``acls`` and ``delegation_tokens`` by id.

    Only ``replay`` changes them.
    """

    def __init__(self) -> None:
        self.brokers: dict[int, RegisterBrokerRecord] = {}
        self.acls: dict[UUID, AccessControlEntryRecord] = {}
        self.delegation_tokens: dict[str, DelegationTokenRecord] = {}
        self._others: dict[tuple[object, ...], MetadataRecord] = {}

    def records(self) -> Iterator[MetadataRecord]:
        """Yield all kept records in the order of a snapshot, nodes first."""
        others = self._others.values()
        yield from (record for record in others if isinstance(record, RegisterControllerRecord))
        yield from self.brokers.values()
        yield from (record for record in others if not isinstance(record, RegisterControllerRecord))
        yield from self.delegation_tokens.values()
        yield from self.acls.values()

    def has_controller(self, controller_id: int) -> bool:
        """Return whether a controller is registered."""
        return (RegisterControllerRecord, controller_id) in self._others

    def scram_credential(self, name: str, mechanism: int) -> UserScramCredentialRecord | None:
        """Return a user's credential for a mechanism, or None."""
        found = self._others.get((UserScramCredentialRecord, name, int(mechanism)))
        return found if isinstance(found, UserScramCredentialRecord) else None

    def scram_credentials(self) -> Iterator[UserScramCredentialRecord]:
        """Iterate over all credentials of all users."""
        return (record for record in self._others.values() if isinstance(record, UserScramCredentialRecord))

    def replay(self, record: MetadataRecord, image: ImageTopics, delta: MetadataDelta) -> None:
        """Apply a record. Raises MalformedMessage if it refers to a missing partition or broker."""
        match record:
            case PartitionChangeRecord():
                topic = image.topic(record.topic_id)
                partition = topic.partitions.get(record.partition_id)
                if partition is None:
                    raise MalformedMessage(f"a metadata record changes {topic.name}-{record.partition_id}, which does not exist")
                topic.partitions[record.partition_id] = changed = merge(partition, record)
                delta.note_partition(topic, changed, is_new=False)
            case ClearElrRecord():
                _clear_eligible_leaders(record, image, delta)
            case RegisterBrokerRecord():
                self._set_broker(record, delta)
            case UnregisterBrokerRecord():
                self._broker(record.broker_id)
                del self.brokers[record.broker_id]
                delta.brokers[record.broker_id] = None
            case FenceBrokerRecord():
                self._set_broker(self._broker(record.id)._replace(fenced=True), delta)
            case UnfenceBrokerRecord():
                self._set_broker(self._broker(record.id)._replace(fenced=False), delta)
            case BrokerRegistrationChangeRecord():
                self._set_broker(_changed(self._broker(record.broker_id), record), delta)
            case AccessControlEntryRecord():
                self.acls[record.id] = delta.acls[record.id] = record
            case RemoveAccessControlEntryRecord():
                self.acls.pop(record.id, None)
                delta.acls[record.id] = None
            case DelegationTokenRecord():
                self.delegation_tokens[record.token_id] = record
            case RemoveDelegationTokenRecord():
                self.delegation_tokens.pop(record.token_id, None)
            case ClientQuotaRecord():
                image.quotas.replay(record)
                delta.quotas = True
            case NoOpRecord():
                pass
            case _:
                self._keep(record)

    def _keep(self, record: MetadataRecord) -> None:
        kind = _REMOVES.get(type(record), type(record))
        if kind not in _KEYS:
            raise MalformedMessage(f"a {kind.__name__} is outside a metadata transaction")
        key = (kind, *(getattr(record, name) for name in _KEYS[kind]))
        if kind is not type(record):
            self._others.pop(key, None)
        else:
            self._others[key] = record

    def _broker(self, broker_id: int) -> RegisterBrokerRecord:
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise MalformedMessage(f"a metadata record has broker {broker_id}, which is not registered")
        return broker

    def _set_broker(self, record: RegisterBrokerRecord, delta: MetadataDelta) -> None:
        self.brokers[record.broker_id] = record
        delta.brokers[record.broker_id] = record


def merge(partition: PartitionRecord, change: PartitionChangeRecord) -> PartitionRecord:
    """Return ``partition`` after ``change``. The partition epoch rises; the leader epoch too, if a leader is named."""
    new = {
        name: value
        for name in ("isr", "replicas", "removing_replicas", "adding_replicas", "directories")
        if (value := getattr(change, name)) is not None
    }
    # A Kafka snapshot has None rather than an empty list.
    new |= {
        name: value or None
        for name in ("eligible_leader_replicas", "last_known_elr")
        if (value := getattr(change, name)) is not None
    }
    if change.leader != NO_LEADER_CHANGE:
        new |= {"leader": change.leader, "leader_epoch": partition.leader_epoch + 1}
    if change.leader_recovery_state != NO_RECOVERY_STATE_CHANGE:
        new["leader_recovery_state"] = change.leader_recovery_state
    return partition._replace(partition_epoch=partition.partition_epoch + 1, **new)


def _changed(broker: RegisterBrokerRecord, change: BrokerRegistrationChangeRecord) -> RegisterBrokerRecord:
    return broker._replace(
        fenced=broker.fenced if change.fenced == 0 else change.fenced > 0,
        in_controlled_shutdown=broker.in_controlled_shutdown or change.in_controlled_shutdown > 0,
        log_dirs=change.log_dirs or broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs if change.cordoned_log_dirs is None else change.cordoned_log_dirs,
    )


def _clear_eligible_leaders(record: ClearElrRecord, image: ImageTopics, delta: MetadataDelta) -> None:
    topics = [image.topics[record.topic_name]] if record.topic_name in image.topics else []
    for topic in topics if record.topic_name else image.topics.values():
        for index, partition in topic.partitions.items():
            if partition.eligible_leader_replicas or partition.last_known_elr:
                change = PartitionChangeRecord(
                    partition_id=index, topic_id=topic.topic_id, eligible_leader_replicas=(), last_known_elr=()
                )
                topic.partitions[index] = cleared = merge(partition, change)
                delta.note_partition(topic, cleared, is_new=False)
