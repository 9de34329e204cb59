"""A client of Kafka's protocol: for brokers among themselves, the command line, and tests.

``connection`` is the protocol without I/O: it encodes requests, decodes responses, and matches the two. ``node_client`` runs
it on an event loop, ``blocking`` on a blocking socket. ``known_cluster`` knows the nodes and leaders, ``cluster_client`` asks
them. ``producer``, ``fetcher`` and ``group_member`` stand on it. This package imports nothing of the broker.

Left out: SASL mechanisms other than PLAIN, SCRAM and OAUTHBEARER, waiting for ``throttle_time_ms``, fetch sessions, fetches
from followers, assignors other than range.
"""
