"""Transactional ids, their producers, and transactions, which are committed or aborted in two phases."""
