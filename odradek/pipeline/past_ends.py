"""End offsets of partitions in the past, as far as the cluster can still tell, so that lag is known before the first sample.

A sample is taken at each micro-batch, but the first micro-batch may cover a long history, and so may one after a pause. Kafka
can look up the first offset whose record is not older than a given time. If a partition's records are in the order of their
timestamps, this was its end offset then. (They are, if brokers or one well-set clock gave the timestamps.) There is no answer
where retention has deleted the records of that time, or where no record was written since.
"""

from collections.abc import Iterable, Iterator

from odradek.pipeline.cluster import Cluster

_SAMPLES = 20
_SHORTEST_STEP_MS = 5000


def times_between(first_ms: int, last_ms: int) -> Iterator[int]:
    """Times to look up, ms since the epoch, evenly spread: about 20 at most, and 5 s apart at least, except for the last one."""
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
        # -1: no record was written since. A log start offset above 0: the partition has lost records, and the first one left may
        # be much younger than the time looked up.
        if offset > begins.get((topic, partition), 0) or offset == begins.get((topic, partition)) == 0
    ]
