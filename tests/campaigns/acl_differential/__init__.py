"""Seeded access control lists, and what odradek and Apache Kafka make of them.

core       questions to odradek's StandardAuthorizer and to Kafka's own class (``Authorizers.java``)
brokers    requests of every API to a whole odradek, in this process, and to a whole Kafka, by clients of several principals
"""
