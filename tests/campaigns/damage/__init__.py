"""Damaged files of a data directory: each is found and named by the next start, or does no harm."""
