"""``odradek brokers`` against a broker."""

import json


def test_a_broker_is_listed_with_its_rack_its_leaders_and_its_disk(broker_process, command):
    broker = broker_process(settings={"broker.rack": "shelf-3"})
    command("topics", "create", "orders", "--partitions", 3, "-b", broker.address)
    command("produce", "orders", "a" * 1000, "-b", broker.address)
    [row] = json.loads(command("brokers", "-b", broker.address, "--json")[1])
    assert row.pop("log_bytes") > 1000
    assert row.pop("disk_free_bytes") > 0
    assert row == {
        "broker": 1,
        "host": broker.host,
        "port": broker.port,
        "rack": "shelf-3",
        "controller": True,
        "kafka_version": "4.4",
        "leaders": 3,
        "replicas": 3,
        "out_of_sync": 0,
    }
