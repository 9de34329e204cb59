"""Transactional ids and their transactions: who may write, to what, and how it all is committed or aborted in two phases."""
