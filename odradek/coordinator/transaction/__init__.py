"""Transactional ids, their producers, and their transactions, which commit or abort in two phases."""
