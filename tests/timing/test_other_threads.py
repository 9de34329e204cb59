import threading
import time

from odradek.timing.system_clock import OtherThreads


def _compute():
    """Compute, and return the processor time in milliseconds."""
    begun = time.thread_time()
    sum(range(3_000_000))
    return (time.thread_time() - begun) * 1000


def test_what_another_thread_computes_is_told_once():
    others = OtherThreads()
    computed = []
    thread = threading.Thread(target=lambda: computed.append(_compute()))
    thread.start()
    thread.join()
    assert others.used_ms() >= computed[0] / 2
    # The tests' own threads need some, too.
    assert others.used_ms() < computed[0] / 2


def test_what_the_asking_thread_computes_does_not_count():
    others = OtherThreads()
    computed = _compute()
    assert others.used_ms() < computed / 2
