"""What is told of many committed offsets and restarts."""

from benchmarks.committed_offsets import Offsets, figures


def offsets(accept_s: float, after_kill_s: float | None) -> Offsets:
    return Offsets(accept_s=accept_s, accept_cpu_s=1.0, after_kill_s=after_kill_s)


def test_each_figure_is_the_best_of_the_runs_that_took_it():
    by_name = {figure.measure: figure for figure in figures({"odradek": [offsets(2.0, 5.0), offsets(1.5, None)]})}

    assert by_name["accept s"].values == {"odradek": 1.5}
    assert by_name["the same after kill -9 s"].values == {"odradek": 5.0}


def test_a_broker_that_was_never_killed_has_no_figure_of_that():
    *_, after_kill = figures({"kafka": [offsets(2.0, None)]})

    assert after_kill.values == {}
