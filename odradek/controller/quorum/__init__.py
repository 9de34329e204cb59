"""The broker's side of KRaft: a broker among the brokers of a quorum of controllers, Apache Kafka's or odradek's own.

Imported only if a cluster is configured.
"""
