"""Clusters of odradek's brokers and their controller in one process: time, network and disks are simulated, all else is real."""
