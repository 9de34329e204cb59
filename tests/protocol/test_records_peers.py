"""Record batches against kafka-python's and aiokafka's own builders and readers, in both directions."""

import random

import aiokafka.record.default_records as aiokafka_records
import kafka.record.default_records as kafka_python_records
import pytest
from aiokafka.record.memory_records import MemoryRecords as AiokafkaMemoryRecords
from kafka.record.memory_records import MemoryRecords as KafkaPythonMemoryRecords

from odradek.protocol.record_batch import iter_batches, read_header, stamped_head, validate
from odradek.protocol.records import Record, build_batch, read_records
from tests.cases import each_case

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
PEERS = {
    "kafka-python": (kafka_python_records.DefaultRecordBatchBuilder, KafkaPythonMemoryRecords),
    "aiokafka": (aiokafka_records.DefaultRecordBatchBuilder, AiokafkaMemoryRecords),
    "aiokafka in Python": (aiokafka_records._DefaultRecordBatchBuilderPy, AiokafkaMemoryRecords),
}
CASES = {
    "one": [Record(0, 1_700_000_000_000, b"key", b"value")],
    "nulls": [Record(0, 7, None, None), Record(1, 7, None, b"v"), Record(2, 7, b"k", None), Record(3, 7, b"", b"")],
    "headers": [
        Record(0, 7, b"k", b"v", (("a", b"1"), ("a", b""), ("é漢", b"\xff\0"))),
        Record(1, 6, None, None, (("null", None),)),
    ],
    "timestamps": [Record(0, 10_000), Record(1, 9_000), Record(2, 10_000 + 2**40), Record(3, 0)],
    "many": [Record(index, 1_000 + index, b"%d" % index, b"value" * (index % 50)) for index in range(2_000)],
    "1 MB": [Record(0, 7, b"k", random.Random(3).randbytes(500_000) + bytes(500_000)), Record(1, 8, b"k", bytes(1_000_000))],
}

every_codec = each_case("codec", CODECS.values(), ids=list(CODECS))
every_peer = pytest.mark.parametrize("peer", PEERS)
every_case = each_case("case", CASES)


def built_by(peer, records, codec, producer=(-1, -1, -1), *, transactional=False):
    """The peer's batch of ``records``."""
    builder = PEERS[peer][0](
        magic=2,
        compression_type=codec,
        is_transactional=transactional,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        batch_size=1 << 24,
    )
    for record in records:
        assert builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    return bytes(builder.build())


def read_by(peer, batch):
    """(records, as the peer reads them; the peer's batch)."""
    found = PEERS[peer][1](batch).next_batch()
    assert found.validate_crc()
    records = [
        Record(
            record.offset,
            record.timestamp,
            None if record.key is None else bytes(record.key),
            None if record.value is None else bytes(record.value),
            tuple((key, None if value is None else bytes(value)) for key, value in record.headers),
        )
        for record in found
    ]
    return records, found


@every_peer
@every_codec
@every_case
def test_we_read_what_a_peer_builds(peer, codec, case):
    batch = built_by(peer, CASES[case], codec, (9, 3, 40), transactional=True)

    header = read_header(batch)
    validate(header, batch)
    assert list(read_records(batch)) == CASES[case]
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.is_transactional) == (9, 3, 40, True)
    assert header.max_timestamp == max(record.timestamp for record in CASES[case])


@every_peer
@every_codec
@every_case
def test_a_peer_reads_what_we_build(peer, codec, case):
    batch = build_batch(CASES[case], compression=codec, producer_id=9, producer_epoch=3, base_sequence=40, transactional=True)

    records, found = read_by(peer, batch)

    assert records == CASES[case]
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (9, 3, 40)
    assert found.is_transactional
    assert found.compression_type == codec


@every_peer
@every_codec
@every_case
def test_a_peer_reads_what_it_built_once_we_have_stamped_it(peer, codec, case):
    batch = built_by(peer, CASES[case], codec)
    _, header = next(iter_batches(batch))

    head = stamped_head(header.batch_length, 1_000, 5)
    records, _ = read_by(peer, head + batch[len(head) :])

    assert records == [record._replace(offset=1_000 + record.offset) for record in CASES[case]]


@every_peer
@every_case
def test_our_bytes_are_the_peers_where_no_codec_has_its_own_way(peer, case):
    ours = build_batch(CASES[case], producer_id=9, producer_epoch=3, base_sequence=40)
    theirs = built_by(peer, CASES[case], 0, (9, 3, 40))

    assert ours[16:] == theirs[16:]
