"""Systems that lack some of what Linux has: the broker serves on macOS, and on Windows it says that it cannot."""

import subprocess
import sys

from odradek.protocol.api_keys import ApiKey
from tests.broker_process import BrokerProcess, command_environment
from tests.raw_client import RawClient, fetch_fields

# What macOS lacks, or may not use. Linux refuses the command, so that fsync does the work.
WITHOUT = """
import fcntl, os
del os.fdatasync, os.pwritev, os.sched_getaffinity, fcntl.lockf
fcntl.F_FULLFSYNC = 51
from odradek.cli.main import main
main()
"""
ON_WINDOWS = """
import sys
sys.modules["fcntl"] = None
from odradek.cli.main import main
main()
"""


class BrokerElsewhere(BrokerProcess):
    program = ("-c", WITHOUT)


def test_a_broker_without_what_macos_lacks_serves_and_starts_again(tmp_path):
    broker = BrokerElsewhere(tmp_path / "data", settings={"log.flush.interval.messages": 1}).start()
    try:
        for count in (1, 2):
            with RawClient(broker.host, broker.port) as client:
                if count == 1:
                    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
                    assert client.call(ApiKey.CREATE_TOPICS, 7, topics=[topic], timeout_ms=5000).topics[0].error_code == 0
                assert client.produce("t", b"%d" % count).error_code == 0
                read = client.call(ApiKey.FETCH, 12, **fetch_fields("t", 0))
                assert read.responses[0].partitions[0].high_watermark == count
            broker.restart()
        assert "Traceback" not in broker.stderr
        assert broker.stop() == 0
    finally:
        if broker.running:
            broker.kill9()


def test_on_windows_a_broker_says_in_one_line_where_it_runs(tmp_path):
    command = [sys.executable, "-c", ON_WINDOWS, "serve", "--data-dir", str(tmp_path / "data")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, env=command_environment())
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "odradek: a broker needs Linux or macOS: on Windows run it in WSL, or in a container\n"
    assert not (tmp_path / "data").exists()
