"""What the metrics say after something has happened to the broker."""

from odradek.broker.metrics.table import SECTIONS, read_all
from odradek.protocol.api_keys import ApiKey
from tests.broker.metrics.bed import on_a_broker, plain


async def test_the_readings_are_those_of_the_table_each_once_and_with_its_labels():
    def scenario(bed):
        bed.broker.controller.auto_create(["a"])
        bed.produce("a", b"x")
        return read_all(bed.broker)

    readings = await on_a_broker(scenario)
    listed = [metric for section in SECTIONS for metric in section.metrics]
    assert sorted(metric.name for metric, _ in readings) == sorted(metric.name for metric in listed)
    assert {metric for metric, _ in readings} == set(listed)
    assert all(len(labels) == len(metric.labels) for metric, samples in readings for labels, _ in samples)


async def test_no_label_values_occur_twice():
    def scenario(bed):
        bed.broker.controller.auto_create(["a", "b"])
        for version in (3, 4):
            bed.request(ApiKey.API_VERSIONS, version)
        bed.produce("a", b"x")
        return read_all(bed.broker)

    for metric, samples in await on_a_broker(scenario):
        labels = [labels for labels, _ in samples]
        assert len(labels) == len(set(labels)), metric.name


async def test_requests_are_told_by_api_and_version():
    def scenario(bed):
        for version in (3, 4, 4):
            bed.request(ApiKey.API_VERSIONS, version)
        return bed.read()

    read = await on_a_broker(scenario)
    assert read["kafka_network_requestmetrics_requests_total"] == {("ApiVersions", "3"): 1, ("ApiVersions", "4"): 2}
    assert plain(read["kafka_network_requestmetrics_totaltimems"]["ApiVersions",]) == (3, 0)


async def test_errors_are_told_by_name_over_all_versions():
    def scenario(bed):
        for version in (5, 6):
            name = {"topic_names": ["gone"]} if version == 5 else {"topics": [{"name": "gone"}]}
            bed.request(ApiKey.DELETE_TOPICS, version, **name)
        return bed.read()["kafka_network_requestmetrics_errors_total"]

    assert await on_a_broker(scenario) == {("DeleteTopics", "UNKNOWN_TOPIC_OR_PARTITION"): 2}


async def test_the_time_of_a_fetch_that_waited_is_remote():
    def scenario(bed):
        bed.broker.controller.auto_create(["a"])
        bed.fetch("a", 0, max_wait_ms=500)
        waiting = bed.read()
        bed.clock.advance(500)
        return waiting, bed.read()

    waiting, after = await on_a_broker(scenario)
    assert waiting["kafka_server_delayedoperationpurgatory_numdelayedoperations"]["Fetch",] == 1
    assert waiting["kafka_server_delayedoperationpurgatory_purgatorysize"]["Fetch",] == 1
    assert after["kafka_server_delayedoperationpurgatory_numdelayedoperations"]["Fetch",] == 0
    assert after["odradek_purgatory_expired_total"]["Fetch",] == 1
    assert plain(after["kafka_network_requestmetrics_remotetimems"]["Fetch",]) == (1, 500)
    assert plain(after["kafka_network_requestmetrics_localtimems"]["Fetch",]) == (1, 0)
    assert plain(after["kafka_network_requestmetrics_totaltimems"]["Fetch",]) == (1, 500)


async def test_a_topics_records_and_bytes_are_counted_in_and_out():
    def scenario(bed):
        bed.broker.controller.auto_create(["a", "b"])
        size = bed.produce("a", b"one", b"two") + bed.produce("a", b"three")
        bed.fetch("a", 0)
        bed.fetch("a", 2)
        return size, bed.read()

    size, read = await on_a_broker(scenario)
    assert read["kafka_server_brokertopicmetrics_messagesin_total"] == {("a",): 3, ("b",): 0}
    assert read["kafka_server_brokertopicmetrics_bytesin_total"] == {("a",): size, ("b",): 0}
    last_batch = read["kafka_server_brokertopicmetrics_bytesout_total"]["a",] - size
    assert 0 < last_batch < size


async def test_a_partitions_log_is_told_by_size_and_offsets():
    def scenario(bed):
        bed.broker.controller.auto_create(["a"])
        size = bed.produce("a", b"one", b"two", partition=1)
        bed.request(ApiKey.DELETE_RECORDS, 2, topics=[{"name": "a", "partitions": [{"partition_index": 1, "offset": 1}]}])
        return size, bed.read()

    size, read = await on_a_broker(scenario, num_partitions=2)
    assert read["kafka_log_log_size"] == {("a", "0"): 0, ("a", "1"): size}
    assert read["kafka_log_log_logstartoffset"] == {("a", "0"): 0, ("a", "1"): 1}
    assert read["kafka_log_log_logendoffset"] == {("a", "0"): 0, ("a", "1"): 2}
    assert read["odradek_partition_high_watermark"] == {("a", "0"): 0, ("a", "1"): 2}
    assert read["kafka_controller_kafkacontroller_globaltopiccount"] == {(): 1}
    assert read["kafka_server_replicamanager_partitioncount"] == {(): 2}


async def test_an_offline_partition_is_counted_and_its_log_left_out():
    def scenario(bed):
        bed.broker.controller.auto_create(["a"])
        bed.broker.partitions.require("a", 0).take_offline("its disk is gone")
        return bed.read()

    read = await on_a_broker(scenario, num_partitions=2)
    assert read["kafka_server_replicamanager_offlinereplicacount"] == {(): 1}
    assert read["kafka_controller_kafkacontroller_offlinepartitionscount"] == {(): 1}
    assert list(read["kafka_log_log_size"]) == [("a", "1")]


async def test_fetch_sessions_are_counted():
    def scenario(bed):
        bed.broker.controller.auto_create(["a"])
        bed.fetch("a", 0, session_epoch=0)
        return bed.read()

    read = await on_a_broker(scenario)
    assert read["kafka_server_fetchsessioncache_numincrementalfetchsessions"] == {(): 1}
    assert read["kafka_server_fetchsessioncache_numincrementalfetchpartitionscached"] == {(): 1}
