import threading

from odradek.timing.system_clock import OtherThreads


def _compute():
    sum(range(3_000_000))


def test_what_another_thread_computes_is_told_once():
    others = OtherThreads()
    thread = threading.Thread(target=_compute)
    thread.start()
    thread.join()
    assert others.used_ms() > 5
    assert others.used_ms() < 5


def test_what_the_asking_thread_computes_does_not_count():
    others = OtherThreads()
    _compute()
    assert others.used_ms() < 5
