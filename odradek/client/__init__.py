"""A client of Kafka's protocol: for brokers among themselves, the command line, and tests.

``connection`` is the protocol without I/O: it encodes requests, decodes responses, and matches the two. ``node_client`` runs
it on an event loop, ``blocking`` on a blocking socket. This package imports nothing of the broker.

Left out: SASL mechanisms other than PLAIN, SCRAM and OAUTHBEARER, waiting for ``throttle_time_ms``, the producer's batching,
the consumer's group membership, the choice of the node to ask.
"""
