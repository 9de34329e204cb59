"""``make demo``: a broker, a minute of life on it with real clients, and what the pipeline finds in what that left behind.

life.py      who does what when, trouble included (``PLANTED``)
members.py   members of consumer groups: confluent-kafka, kafka-python, aiokafka
producers.py producers, transactional and not: confluent-kafka
__main__.py  the broker, the life, the pipeline, the report
"""
