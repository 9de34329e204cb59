"""``odradek cluster`` as a process, over nodes that stand in: what it says, what it is asked, and how it ends."""

import signal
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.broker_process import STOP_TIMEOUT_S
from tests.campaigns.kafka_tools.kafka_broker import until
from tests.cli.local_cluster.cluster_process import is_alive


def test_one_line_says_that_all_brokers_are_ready(stand_ins):
    cluster = stand_ins("--brokers", 3).wait_ready()
    assert len(set(cluster.addresses)) == 3
    assert cluster.end(signal.SIGTERM) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_brokers_end_before_the_controller(stand_ins, number):
    cluster = stand_ins("--brokers", 2).wait_ready()
    # Brokers that stand in do not need the controller, and may be ready before it heeds signals.
    until(lambda: "100 starts" in cluster.said(), STOP_TIMEOUT_S)
    assert cluster.end(number) == (0, "", "")
    ends = [line for line in cluster.said() if line.endswith("ends")]
    assert sorted(ends[:2]) == ["1 ends", "2 ends"]
    assert ends[2:] == ["100 ends"]


def test_no_node_outlives_a_command_that_is_killed(stand_ins):
    cluster = stand_ins("--brokers", 2).wait_ready()
    pids = [node["pid"] for node in cluster.nodes().values()]
    assert len(pids) == 3
    assert all(map(is_alive, pids))
    cluster.process.kill()
    until(lambda: not any(map(is_alive, pids)), STOP_TIMEOUT_S)


def test_a_temporary_directory_is_removed_at_the_end(stand_ins, tmp_path):
    cluster = stand_ins("--brokers", 1).wait_ready()
    [place] = (tmp_path / "tmp").glob("odradek-cluster-*")
    assert (place / "broker-1").is_dir()
    assert cluster.end(signal.SIGTERM) == (0, "", "")
    assert not place.exists()


def test_status_finds_the_cluster_on_a_temporary_directory(stand_ins):
    cluster = stand_ins("--brokers", 2).wait_ready()
    nodes = cluster.nodes()
    assert {node: (row["role"], row["state"]) for node, row in nodes.items()} == {
        100: ("controller", "running"),
        1: ("broker", "running"),
        2: ("broker", "running"),
    }
    assert [nodes[1]["address"], nodes[2]["address"]] == cluster.addresses


def test_a_directory_that_was_given_is_kept_and_its_socket_is_not(stand_ins, tmp_path):
    place = tmp_path / "cluster"
    cluster = stand_ins("--brokers", 1, data_dir=place).wait_ready()
    assert cluster.nodes()[1]["state"] == "running"
    assert cluster.end(signal.SIGTERM) == (0, "", "")
    assert sorted(path.name for path in place.iterdir()) == [
        ".lock",
        "broker-1",
        "broker-1.log",
        "controller-100",
        "controller-100.log",
    ]


def test_a_killed_broker_is_told_in_one_line_and_the_others_go_on(stand_ins, tmp_path):
    cluster = stand_ins("--brokers", 2, data_dir=tmp_path / "cluster").wait_ready()
    before = cluster.nodes()
    assert cluster.ask("kill", 2) == (0, "broker 2 is down\n", "")
    after = cluster.nodes()
    assert (after[2]["state"], after[2]["pid"]) == ("down", None)
    assert (after[1], after[100]) == (before[1], before[100])
    log = tmp_path / "cluster" / "broker-2.log"
    line = f"odradek: broker 2 (pid {before[2]['pid']}) ended: killed by SIGKILL; its log is {log}\n"
    assert cluster.end(signal.SIGTERM) == (0, "", line)


def test_a_node_that_is_down_starts_again_on_its_address(stand_ins):
    cluster = stand_ins("--brokers", 2).wait_ready()
    before = cluster.nodes()
    cluster.ask("kill", 1)
    assert cluster.ask("start", 1) == (0, f"broker 1 is ready on {before[1]['address']}\n", "")
    after = cluster.nodes()
    assert after[1]["state"] == "running"
    assert after[1]["pid"] != before[1]["pid"]
    assert cluster.said().count("1 starts") == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("start", 1), "broker 1 is running"),
        (("kill", 7), "there is no node 7; nodes: 100, 1"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(stand_ins, arguments, reason):
    cluster = stand_ins("--brokers", 1).wait_ready()
    assert cluster.ask(*arguments) == (1, "", f"odradek: {reason}\n")


WAITS = "odradek: broker 2 cannot start while controller 100 is down: run odradek cluster start 100 first\n"


def test_a_broker_is_not_started_without_a_controller(stand_ins):
    cluster = stand_ins("--brokers", 2).wait_ready()
    for node in (100, 2):
        assert cluster.ask("kill", node)[0] == 0
    assert cluster.ask("start", 2) == (1, "", WAITS)
    assert cluster.nodes()[2]["state"] == "down"
    for node in (100, 2):
        assert cluster.ask("start", node)[0] == 0


@pytest.mark.parametrize("ends", ["the controller", "the cluster"])
def test_a_start_that_cannot_end_any_more_is_told_why(stand_ins, ends):
    cluster = stand_ins("--brokers", 2, "--set", "stand.in.hangs=2").wait_ready()
    cluster.ask("kill", 2)
    with ThreadPoolExecutor(1) as pool:
        start = pool.submit(cluster.ask, "start", 2)
        until(lambda: cluster.nodes()[2]["state"] == "starting", STOP_TIMEOUT_S)
        if ends == "the cluster":
            assert cluster.end(signal.SIGTERM)[0] == 0
            reason = "odradek: broker 2 did not start: the cluster was stopped before it was ready\n"
            assert start.result() == (1, "", reason)
        else:
            cluster.ask("kill", 100)
            assert start.result() == (1, "", WAITS)


def test_a_node_that_does_not_start_ends_the_cluster_with_its_reason(stand_ins):
    cluster = stand_ins("--brokers", 2, "--set", "stand.in.fails=2")
    out, err = cluster.process.communicate(timeout=STOP_TIMEOUT_S)
    assert (out, err) == ("", "odradek: broker 2 did not start: exit status 2: the disk is on fire\n")
    assert cluster.process.returncode == 2
    starts, ends = ({line.split()[0] for line in cluster.said() if line.endswith(word)} for word in ("starts", "ends"))
    assert ends == starts


def test_a_second_signal_ends_what_does_not_end(stand_ins):
    cluster = stand_ins("--brokers", 1, "--set", "stand.in.stays=1").wait_ready()
    pids = [node["pid"] for node in cluster.nodes().values()]
    cluster.process.send_signal(signal.SIGINT)
    until(lambda: cluster.nodes()[1]["state"] == "stopping", STOP_TIMEOUT_S)
    status, out, err = cluster.end(signal.SIGINT)
    assert (status, out, err) == (130, "", "")
    assert not any(map(is_alive, pids))


def test_two_clusters_cannot_have_one_directory(stand_ins, tmp_path):
    place = tmp_path / "cluster"
    first = stand_ins("--brokers", 1, data_dir=place).wait_ready()
    second = stand_ins("--brokers", 1, data_dir=place)
    out, err = second.process.communicate(timeout=STOP_TIMEOUT_S)
    assert (second.process.returncode, out) == (2, "")
    assert err == f"odradek: a cluster is already running on {place}\n"
    assert first.nodes()[1]["state"] == "running"


def test_a_cluster_that_is_not_there_cannot_be_asked(command, tmp_path):
    assert command("cluster", "status", "--data-dir", tmp_path) == (2, "", f"odradek: no cluster is running on {tmp_path}\n")


def test_a_port_that_is_taken_ends_the_start(command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        advice = "choose another --port, or 0 for free ones"
        told = f"odradek: cannot bind 127.0.0.1:{port}: Address already in use; {advice}\n"
        assert command("cluster", "--port", port) == (2, "", told)


def test_what_the_command_decides_cannot_be_set(command):
    status, _, err = command("cluster", "--set", "node.id=4")
    assert (status, err) == (2, "odradek: --set cannot set node.id: odradek cluster sets it itself\n")


def test_brokers_that_have_no_controller_to_take_leave_of_are_not_waited_for_long(stand_ins):
    cluster = stand_ins("--brokers", 1, "--set", "stand.in.stays=1").wait_ready()
    [broker] = [row["pid"] for node, row in cluster.nodes().items() if node == 1]
    assert cluster.ask("kill", 100)[0] == 0
    status, out, err = cluster.end(signal.SIGTERM)
    assert (status, out) == (0, "")
    assert err.endswith("odradek: broker 1 did not end in time: killing it\n")
    assert not is_alive(broker)


def test_a_broker_and_a_cluster_leave_each_others_directory_alone(stand_ins, command, tmp_path):
    place = tmp_path / "cluster"
    cluster = stand_ins("--brokers", 1, data_dir=place).wait_ready()
    served = "serve", "--port", 0, "--data-dir", place
    in_use = f"odradek: {place} is in use by another broker, or by odradek cluster\n"
    assert command(*served) == (2, "", in_use)
    assert cluster.end(signal.SIGTERM)[0] == 0
    (place / "broker-1" / "meta.properties").write_text("version=1\n")
    before = sorted(path.name for path in place.iterdir())
    run = f"run odradek cluster --data-dir {place}, or choose another directory"
    assert command(*served) == (2, "", f"odradek: {place} has the data of a cluster (broker-1): {run}\n")
    assert sorted(path.name for path in place.iterdir()) == before


def test_a_cluster_leaves_the_data_of_a_broker_alone(command, tmp_path):
    (tmp_path / "meta.properties").write_text("version=1\n")
    reason = f"{tmp_path} has the data of a single broker: run odradek serve --data-dir {tmp_path}, or choose another directory"
    assert command("cluster", "--port", 0, "--data-dir", tmp_path) == (2, "", f"odradek: {reason}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["meta.properties"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--set-broker", "log.dirs=x"), "--set-broker log.dirs=x: not of the form N:KEY=VALUE"),
        (("--set-broker", "3:num.partitions=1"), "--set-broker 3:num.partitions=1: there is no broker 3, only 1 to 2"),
        (("--set-broker", "1:node.id=7"), "--set-broker cannot set node.id: odradek cluster sets it itself"),
        (("--racks", "a,,b"), "--racks a,,b: a rack has no name"),
    ],
)
def test_settings_that_no_broker_can_have_are_refused(command, arguments, reason):
    status, out, err = command("cluster", "--brokers", 2, *arguments)
    assert (status, out) == (2, "")
    assert reason in err
