"""Assembles the parts into a broker or a controller, with or without listeners."""
