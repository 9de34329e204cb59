"""Cutting the records of a large operation into parts, to be brought into the image one after the other.

What belongs together stays together: a new topic with its configs and partitions, the configs of one resource, the quotas of one
entity. Access control entries and SCRAM credentials stand alone, as Kafka's authorizer takes them in one by one.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from odradek.protocol.metadata_records import ConfigRecord, MetadataRecord, RemoveTopicRecord, TopicRecord
from odradek.protocol.metadata_records.security import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

_FIRST: Final = (
    TopicRecord,
    RemoveTopicRecord,
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    UserScramCredentialRecord,
    RemoveUserScramCredentialRecord,
)


def parts(records: Sequence[MetadataRecord], least: int) -> Iterator[Sequence[MetadataRecord]]:
    """``records`` in order, in parts of ``least`` or more."""
    first = 0
    for place in range(1, len(records)):
        if place - first >= least and _begins(records[place - 1], records[place]):
            yield records[first:place]
            first = place
    yield records[first:]


def _begins(previous: MetadataRecord, record: MetadataRecord) -> bool:
    """Return True for the first record of a topic, the only one of an entry, or the first of another resource or entity."""
    if isinstance(record, _FIRST):
        return True
    if isinstance(record, ClientQuotaRecord):
        return not isinstance(previous, ClientQuotaRecord) or record.entity != previous.entity
    # Those of a new topic follow its TopicRecord.
    return (
        isinstance(record, ConfigRecord)
        and isinstance(previous, ConfigRecord)
        and (record.resource_type, record.resource_name) != (previous.resource_type, previous.resource_name)
    )
