"""Produce responses by hand, against the general encoder."""

from uuid import UUID

import pytest

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import messages
from odradek.protocol.produce_response import produce_response_body
from odradek.protocol.responses import framed, response_encoder

M = messages(ApiKey.PRODUCE)
PARTITIONS = [(index, 2**40 + index, 1_700_000_000_000 if index % 2 else -1, index) for index in range(150)]


@pytest.mark.parametrize("version", [9, 10, 11, 12, 13])
@pytest.mark.parametrize("counts", [[], [1], [0, 6], [150, 2]])
def test_it_is_what_the_general_encoder_makes_of_the_same(version, counts):
    by_id = version >= 13
    told = []
    topics = []
    for number, count in enumerate(counts):
        name = "\u00e4" * (100 * number + 1)
        topic_id = UUID(int=number + 1)
        told.append((topic_id.bytes if by_id else name, PARTITIONS[:count]))
        partitions = [
            M.PartitionProduceResponse(index=index, base_offset=base, log_append_time_ms=at, log_start_offset=start)
            for index, base, at, start in PARTITIONS[:count]
        ]
        topics.append(M.TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=partitions))
    (expected,) = response_encoder(ApiKey.PRODUCE, version)(5, M.ProduceResponse(responses=topics))
    assert framed(5, produce_response_body(told)) == expected
