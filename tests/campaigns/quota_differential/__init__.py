"""Client quotas, and what odradek and Apache Kafka make of them.

core       seeded histories of clients and of quotas to odradek's quota managers and to Kafka's own classes (``Quotas.java``)
brokers    throttled clients at a whole odradek and at a whole Kafka: throughput, throttle times, and who is unharmed
"""
