"""``odradek cluster``: a controller and brokers on this machine, a process each, under one command that supervises them."""
