"""A transaction, and a broker that is killed (-9) at one named point of it.

Nothing in the broker knows of it.

    points      the one list of crash points: a name, what it is, where, and in which scenarios it is met
    places      a place in the broker's code, and how a process is made to die there
    matching    which calls of a function are meant
    broker      the broker's process that dies at a point
    epochs      a transactional id that has few epochs left
    producer    a producer of transactions that can send again what was not answered
    scenario    what the producer does before the kill and after the restart
    seen        what is there to be seen: on disk, over a raw socket, by a real reader of committed records
    run         one point in one scenario: kill, restart, check

``tests.campaigns.crash.crash_points`` runs them all, ``tests/campaigns/crash/test_points.py`` some.
"""
