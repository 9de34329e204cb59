"""kill -9 while topics are made and deleted under pattern consumers: a short run of ``kill9_topics``, which says more."""

import gc
import logging

import pytest

from tests.campaigns.crash.kill9_topics import kill_under_topics, summary
from tests.campaigns.crash.support import seeded

KILLS = 3


@pytest.mark.timeout(180)
# The broker is another process. kafka-python leaves the sockets of connections that were refused to the garbage collector, and
# aiokafka its connections where its stop takes longer than it is given.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore:loop is closed:ResourceWarning")
def test_what_was_acknowledged_is_read_in_full_by_pattern_consumers_too(broker_process, caplog):
    # Errors in captured records would keep those sockets alive.
    caplog.set_level(logging.CRITICAL, "kafka")
    caplog.set_level(logging.CRITICAL, "aiokafka")
    work, consumers = kill_under_topics(broker_process(), seeded("topics"), KILLS)
    print(summary(work, consumers))
    gc.collect()
    assert work.must_be_read()
