"""A transaction, and a broker that is killed (-9) at a named point of it.

The broker's code has no support for this.

    points      the list of crash points: name, description, places, and scenarios that reach it
    places      a place in the broker's code, and how to make a process die there
    matching    selects calls of a function by their arguments
    broker      the broker's process that dies at a point
    epochs      a transactional id with few epochs left
    producer    a transactional producer that can resend unanswered requests
    scenario    the producer's steps before the kill and after the restart
    seen        observations: on disk, over a raw socket, by a real read_committed consumer
    run         one point in one scenario: kill, restart, check
    workloads   the steps up to the kill, without it: which points are reached

``tests.campaigns.crash.crash_points`` runs all points, ``tests/campaigns/crash/test_points.py`` some.
``tests/campaigns/crash/test_points.py`` checks that each is reached.
"""
