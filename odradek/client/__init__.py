"""A client of Kafka's protocol: for brokers among themselves, the command line, and tests.

``connection`` is the protocol without I/O: it encodes requests, cuts and decodes what comes back, and matches the two.
``node_client`` runs it on an event loop, ``blocking`` on a blocking socket. The room knows no broker.

Left out: SASL but by PLAIN and SCRAM, waiting for ``throttle_time_ms``, the producer's batching, the consumer's group
membership, the choice of the node to ask.
"""
