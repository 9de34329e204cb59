"""``odradek cluster``: a controller and brokers on this machine, one process each, under one supervising command."""
