"""All logs of a broker: the data directories, their checkpoint files, and the upkeep of logs in the background."""
