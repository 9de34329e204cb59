"""Cutting the records of a large operation into parts, to be brought into the image one after the other.

What belongs together stays together: a new topic with its configs and partitions, the configs of one resource.
"""

from collections.abc import Iterator, Sequence

from odradek.protocol.metadata_records import ConfigRecord, MetadataRecord, RemoveTopicRecord, TopicRecord


def parts(records: Sequence[MetadataRecord], least: int) -> Iterator[Sequence[MetadataRecord]]:
    """``records`` in order, in parts of ``least`` or more."""
    first = 0
    for place in range(1, len(records)):
        if place - first >= least and _begins(records[place - 1], records[place]):
            yield records[first:place]
            first = place
    yield records[first:]


def _begins(previous: MetadataRecord, record: MetadataRecord) -> bool:
    """Whether ``record`` is the first of a topic, or of the configs of another resource."""
    if isinstance(record, TopicRecord | RemoveTopicRecord):
        return True
    # Those of a new topic follow its TopicRecord.
    return (
        isinstance(record, ConfigRecord)
        and isinstance(previous, ConfigRecord)
        and (record.resource_type, record.resource_name) != (previous.resource_type, previous.resource_name)
    )
