"""A data directory that is removed under a running broker is noticed within seconds, and said."""

import shutil

NOTICED_S = 15.0


def test_a_broker_whose_data_directory_is_removed_ends_with_a_line(broker_process):
    broker = broker_process()
    shutil.rmtree(broker.data_dir)
    assert broker.wait_ended(NOTICED_S) == 1
    assert f"{broker.data_dir}, does not work: the directory was removed" in broker.stderr
    assert "Traceback" not in broker.stderr


def test_a_lock_file_alone_may_go(broker_process):
    broker = broker_process()
    (broker.data_dir / ".lock").unlink()
    assert broker.stop() == 0
