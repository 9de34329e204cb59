"""Puts the rooms together: a broker, a controller, each with its listeners or without."""
