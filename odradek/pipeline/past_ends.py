"""Where partitions ended in the past, as far as the cluster can still say: what lag was before anybody looked.

A sample is taken at each micro-batch, but the first one takes a history that may be long, and so does one after a pause. Kafka
can be asked for the first offset whose record is not older than a time, which is where the partition ended then, if its records
are in the order of their timestamps, as they are where brokers or one well-set clock gave them. Where retention has taken the
records of that time nothing is said, and so where no record has come since.
"""

from collections.abc import Iterable, Iterator

from odradek.pipeline.cluster import Cluster

_SAMPLES = 20
_SHORTEST_STEP_MS = 5000


def times_between(first_ms: int, last_ms: int) -> Iterator[int]:
    """Times to ask for, ms since the epoch, evenly spread: some 20 at most, 5 s apart at least but for the last."""
    step_ms = max(_SHORTEST_STEP_MS, (last_ms - first_ms) // _SAMPLES)
    yield from range(first_ms + step_ms, last_ms, step_ms)
    if last_ms - first_ms >= step_ms:
        yield last_ms


def past_ends(cluster: Cluster, topics: Iterable[str], first_ms: int, last_ms: int) -> list[tuple[str, int, int, int]]:
    """(topic, partition, end offset, ms since the epoch) of the topics' partitions between these times. Raises PipelineError."""
    times = list(times_between(first_ms, last_ms))
    if not times:
        return []
    topics = list(topics)
    begins = {(topic, partition): offset for topic, partition, offset in cluster.begin_offsets(topics)}
    return [
        (topic, partition, offset, time_ms)
        for time_ms in times
        for topic, partition, offset in cluster.offsets_at(topics, time_ms)
        # -1: nothing has come since. What begins above 0 has lost records, and then the first one left may be much younger.
        if offset > begins.get((topic, partition), 0) or offset == begins.get((topic, partition)) == 0
    ]
