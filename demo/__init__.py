"""``make demo``: a broker, a minute of activity of real clients, and the findings of the pipeline.

    life.py      the clients' events and their times, planted trouble included (``PLANTED``)
    members.py   members of consumer groups: confluent-kafka, kafka-python, aiokafka
    producers.py producers, transactional and not: confluent-kafka
    __main__.py  the broker, the life, the pipeline, the report

Run it from the repository's root.
"""
