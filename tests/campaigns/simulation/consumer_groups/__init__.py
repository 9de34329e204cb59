"""Histories of groups of the consumer protocol (KIP-848), with members of the classic one among them."""
