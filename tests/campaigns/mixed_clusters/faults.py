"""Faults that are planted into a replica, each of which the comparison must find."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import pack

from tests.campaigns.mixed_clusters.comparison import HIGH_WATERMARKS, LEADER_EPOCHS, Replica

_LAST_BYTE = -1


def _change_a_byte(replica: Replica) -> tuple[Path, bytes]:
    path = _last_segment(replica)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    return path, bytes(data)


def _lose_a_batch(replica: Replica) -> tuple[Path, bytes]:
    path = _last_segment(replica)
    last = replica.batches[_LAST_BYTE][2]
    data = path.read_bytes()
    return path, data[: len(data) - (len(replica.log) - last)]


def _lose_a_producer(replica: Replica) -> tuple[Path, bytes]:
    path = replica.directory / f"{replica.end_offset:020d}.snapshot"
    data = bytearray(path.read_bytes())
    data[_LAST_BYTE] ^= 1
    return path, bytes(data)


def _forget_an_epoch(replica: Replica) -> tuple[Path, bytes]:
    return replica.directory / LEADER_EPOCHS, b"0\n0\n"


def _forget_the_high_watermark(replica: Replica) -> tuple[Path, bytes]:
    path = replica.directory.parent / HIGH_WATERMARKS
    topic, partition = replica.directory.name.rsplit("-", 1)
    return path, path.read_bytes().replace(f"{topic} {partition} {replica.end_offset}\n".encode(), b"")


def _lose_an_aborted_transaction(replica: Replica) -> tuple[Path, bytes]:
    path = replica.directory / f"{0:020d}.txnindex"
    # One that is nowhere else takes the place of what is there.
    return path, pack(">hqqqq", 0, 1 << 40, 1, 2, 3)


FAULTS: dict[str, Callable[[Replica], tuple[Path, bytes]]] = {
    "a byte of the log is another": _change_a_byte,
    "the last batch is lost": _lose_a_batch,
    "a producer is in another state": _lose_a_producer,
    "an aborted transaction is another": _lose_an_aborted_transaction,
    "the leader epochs are lost": _forget_an_epoch,
    "the high watermark is lost": _forget_the_high_watermark,
}


@contextmanager
def planted(name: str, replica: Replica) -> Iterator[None]:
    """One of ``FAULTS``, until the end of the ``with`` block."""
    path, spoilt = FAULTS[name](replica)
    sound = path.read_bytes() if path.exists() else None
    assert spoilt != sound, name
    path.write_bytes(spoilt)
    try:
        yield
    finally:
        if sound is None:
            path.unlink()
        else:
            path.write_bytes(sound)


def _last_segment(replica: Replica) -> Path:
    return max(path for path in replica.directory.glob("*.log") if path.stat().st_size)
