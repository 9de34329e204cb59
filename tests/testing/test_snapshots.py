"""Snapshots, and what is made of them: a fork has what its broker had, and neither of them sees what the other does then."""

import asyncio
import socket

import confluent_kafka
import confluent_kafka.admin
import kafka
import pytest

from odradek.testing import Broker, NewTopic, NotReached
from odradek.testing.disk import MemoryDisk
from odradek.testing.image import LinkedFileSystem

CLIENT_S = 15
KINDS = ("memory", "directory")


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    """Where a broker is kept."""
    return None if request.param == "memory" else tmp_path / "broker"


def transactional(broker):
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "tx"})
    producer.init_transactions(CLIENT_S)
    return producer


def begin(producer, value):
    producer.begin_transaction()
    producer.produce("t", value)
    assert producer.flush(CLIENT_S) == 0


def values(broker, topic="t"):
    return [each.text for each in broker.records(topic)]


def committed(broker):
    return [each.text for each in broker.records("t", isolation_level="read_committed")]


def consumer_of(broker, group="g"):
    return kafka.KafkaConsumer(
        "t", group_id=group, auto_offset_reset="earliest", enable_auto_commit=False, bootstrap_servers=broker.bootstrap_servers
    )


def test_a_fork_has_records_offsets_members_and_the_open_transaction(place):
    with Broker(place, topics={"t": 1}) as broker:
        broker.produce("t", ["first"])
        consumer = consumer_of(broker)
        next(consumer)
        consumer.commit()
        producer = transactional(broker)
        begin(producer, "aborted")
        producer.abort_transaction(CLIENT_S)
        begin(producer, "open")
        broker.wait_for(transactional_id="tx", state="Ongoing")
        with broker.snapshot().fork() as fork:
            assert fork.bootstrap_servers != broker.bootstrap_servers
            assert values(fork) == ["first", "aborted", "open"]
            assert committed(fork) == ["first"]
            assert str(fork.groups["g"]) == str(broker.groups["g"])
            assert fork.groups["g"].state == "Stable"
            assert str(fork.transactions["tx"]) == str(broker.transactions["tx"])
            # Nothing was recovered: it is as after a clean stop.
            assert fork.log == []
            # The transaction is its own, too: there it is aborted, here it is committed.
            transactional(fork)
            fork.wait_for(transactional_id="tx", state="Empty")
            producer.commit_transaction(CLIENT_S)
            broker.wait_for(transactional_id="tx", state="CompleteCommit")
            assert (committed(fork), committed(broker)) == (["first"], ["first", "open"])
        consumer.close()


def test_what_is_written_to_one_is_not_in_the_others_even_when_they_are_killed(place):
    with Broker(place, topics={"t": 1}) as broker:
        broker.produce("t", ["seed"])
        snapshot = broker.snapshot()
        with snapshot.fork() as fork, snapshot.fork() as sibling:
            broker.produce("t", ["broker"])
            fork.produce("t", ["fork"])
            with fork.snapshot().fork() as grandchild:
                fork.produce("t", ["fork again"])
                grandchild.produce("t", ["grandchild"])
                sibling.produce("new", ["sibling"])
                every = (broker, fork, sibling, grandchild)
                for each in every:
                    each.kill()
                    each.start()
                assert [values(each) for each in every] == [
                    ["seed", "broker"],
                    ["seed", "fork", "fork again"],
                    ["seed"],
                    ["seed", "fork", "grandchild"],
                ]
                assert [list(each.topics) for each in every] == [["t"], ["t"], ["new", "t"], ["t"]]


def test_a_restore_brings_everything_back_at_the_same_address_and_breaks_connections(place):
    with Broker(place, topics={"t": 1}) as broker:
        address = broker.bootstrap_servers
        broker.produce("t", ["seed"])
        snapshot = broker.snapshot()
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": address})
        for _ in range(2):
            broker.produce("t", ["later"])
            broker.produce("other", ["later"])
            consumer = consumer_of(broker)
            next(consumer)
            consumer.commit()
            consumer.close()
            admin.delete_topics(["t"])["t"].result(CLIENT_S)
            with socket.create_connection(address.split(":")) as connection:
                connection.settimeout(CLIENT_S)
                broker.restore(snapshot)
                assert connection.recv(1) == b""
            assert broker.bootstrap_servers == address
            assert (list(broker.topics), values(broker), broker.groups) == (["t"], ["seed"], {})
        consumer = consumer_of(broker)
        assert next(consumer).value == b"seed"
        consumer.close()


def test_a_snapshot_outlives_its_broker_and_leaves_nothing_behind(place, tmp_path):
    with Broker(place, topics={"t": 1}) as broker:
        broker.produce("t", ["seed"])
        snapshot = broker.snapshot()
        broker.kill()
        with pytest.raises(RuntimeError, match="not running"):
            broker.snapshot()
    for _ in range(2):
        with snapshot.fork() as fork:
            fork.produce("t", ["fork"])
            assert values(fork) == ["seed", "fork"]
            fork.stop()
            fork.start()
            assert values(fork) == ["seed", "fork"]
    snapshot.close()
    snapshot.close()
    assert [path for path in tmp_path.iterdir() if path != place] == []


async def test_on_the_callers_loop_each_step_is_awaited():
    async with Broker(topics={"t": 1}) as broker:
        await broker.produce("t", ["seed"])
        snapshot = await broker.snapshot()
        await broker.produce("t", ["broker"])
        async with snapshot.fork() as fork:
            assert fork.core.log_manager.was_clean
            await fork.produce("t", ["fork"])
            assert [each.text for each in await fork.records("t")] == ["seed", "fork"]
        # Of one kind to the other.
        with snapshot.fork() as threaded:
            assert await asyncio.to_thread(values, threaded) == ["seed"]
        await broker.restore(snapshot)
        assert [each.text for each in await broker.records("t")] == ["seed"]


def test_a_broker_that_a_fault_restarts_is_waited_for():
    with Broker(topics={"t": 1}) as broker:
        broker.produce("t", ["seed"])
        snapshot = broker.snapshot()

        async def restart():
            broker._thread.broker.restart_now()

        broker._thread.run(restart)
        with broker.snapshot().fork() as fork:
            assert values(fork) == ["seed"]
        broker._thread.run(restart)
        broker.restore(snapshot)
        assert values(broker) == ["seed"]


def test_time_goes_on_from_the_snapshot():
    with Broker(topics={"t": NewTopic(1, {"retention.ms": 3_600_000})}) as broker:
        broker.clock.advance(minutes=1)
        broker.produce("t", ["seed"])
        broker.clock.freeze()
        moment, snapshot = broker.clock.now, broker.snapshot()
        # The records go with their time, and come back with it.
        broker.clock.advance(hours=2)
        assert values(broker) == []
        with snapshot.fork() as fork:
            assert (fork.clock.now, fork.clock.is_frozen) == (moment, True)
            fork.clock.advance(minutes=1)
        broker.restore(snapshot)
        assert (broker.clock.now, values(broker)) == (moment, ["seed"])
        broker.clock.advance(minutes=50)
        assert values(broker) == ["seed"]


def test_a_fork_has_the_configs_and_not_the_addresses():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    address = f"PLAINTEXT://127.0.0.1:{port}"
    configs = {"num.partitions": 3, "listeners": address, "advertised.listeners": address}
    with Broker(configs=configs) as broker, broker.snapshot().fork(configs={"message.max.bytes": 100}) as fork:
        assert broker.bootstrap_servers == f"127.0.0.1:{port}"
        assert fork.bootstrap_servers != broker.bootstrap_servers
        consumer = kafka.KafkaConsumer(bootstrap_servers=fork.bootstrap_servers)
        assert [broker.port for broker in consumer._client.cluster.brokers()] == [int(fork.bootstrap_servers.split(":")[1])]
        consumer.close()
        fork.topic("orders")
        assert fork.topics["orders"].partitions == 3
        with pytest.raises(Exception, match="MESSAGE_TOO_LARGE"):
            fork.produce("orders", [bytes(200)])


def test_a_snapshot_is_restored_to_a_broker_of_its_kind(tmp_path):
    with Broker() as broker, Broker(tmp_path / "b") as other:
        with pytest.raises(ValueError, match="in memory"):
            other.restore(broker.snapshot())
        other.produce("t", ["it goes on"])
        with pytest.raises(NotReached):
            broker.wait_for(topic="t", within=0.01)


async def test_a_log_with_bytes_behind_its_end_is_recovered_by_the_fork():
    async with Broker(topics={"t": 1}) as broker:
        await broker.produce("t", ["seed"])
        log = broker.core.log_manager.logs["t", 0]
        log.segments.active.file.append([b"half a batch"])
        log.flush_state.has_failed_append = True
        async with (await broker.snapshot()).fork() as fork:
            await fork.produce("t", ["fork"])
            assert [each.text for each in await fork.records("t")] == ["seed", "fork"]
            assert not fork.core.log_manager.was_clean


@pytest.mark.parametrize("seed", range(5))
def test_a_file_in_memory_is_its_bytes_however_it_was_forked_and_cut(seed):
    from random import Random

    random = Random(seed)
    disk = MemoryDisk()
    disk.make_dirs("/d")
    disk.open("/d/f", create=True)
    disks = [(disk, bytearray())]
    for _ in range(400):
        disk, model = random.choice(disks)
        file = disk.open("/d/f")
        match random.randrange(4):
            case 0:
                data = random.randbytes(random.randrange(1, 20))
                file.append([data])
                model += data
            case 1:
                size = random.randint(0, len(model))
                file.truncate(size)
                del model[size:]
            case 2 if len(disks) < 8:
                disks.append((disk.fork(), bytearray(model)))
            case _:
                offset, length = random.randint(0, len(model) + 3), random.randrange(60)
                assert file.pread(length, offset) == model[offset : offset + length]
        assert all(each.read_bytes("/d/f") == known and each.size("/d/f") == len(known) for each, known in disks), seed


def test_a_disk_in_memory_forgets_no_directory_and_finds_none_that_is_gone():
    disk = MemoryDisk()
    disk.make_dirs("/a/b")
    disk.open("/a/b/f", create=True).append([b"1"])
    fork = disk.fork()
    disk.rename("/a/b", "/a/c")
    assert (disk.exists("/a/b/f"), disk.read_bytes("/a/c/f"), fork.read_bytes("/a/b/f")) == (False, b"1", b"1")
    disk.remove_tree("/a/c")
    assert (disk.exists("/a/c/f"), disk.list_dir("/a")) == (False, [])


def test_a_linked_file_is_copied_before_its_first_change(tmp_path):
    files = LinkedFileSystem()
    (tmp_path / "a").mkdir()
    file = files.open(f"{tmp_path}/a/f", create=True)
    file.append([b"12345"])
    files.link_to(f"{tmp_path}/a", f"{tmp_path}/b")
    descriptor, other = file.fileno(), LinkedFileSystem().open(f"{tmp_path}/b/f")
    assert (tmp_path / "a/f").samefile(tmp_path / "b/f")
    file.append([b"67"])
    other.truncate(3)
    assert ((tmp_path / "a/f").read_bytes(), (tmp_path / "b/f").read_bytes()) == (b"1234567", b"123")
    # Whoever is sending from it goes on.
    assert (file.fileno(), file.pread(9, 0)) == (descriptor, b"1234567")
    for each in (file, other):
        each.close()


def test_a_restore_leaves_a_directory_alone_that_the_configs_overrule(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kept").touch()
    with Broker(tmp_path / "other", topics={"orders": 1}, configs={"log.dirs": tmp_path / "data"}) as broker:
        snapshot = broker.snapshot()
        broker.produce("orders", ["an order"])
        with snapshot.fork() as fork:
            assert fork.records("orders") == []
        broker.restore(snapshot)
        assert broker.records("orders") == []
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["kept"]
