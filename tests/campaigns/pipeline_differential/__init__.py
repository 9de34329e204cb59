"""The pipeline against the cluster it reads: ``python -m tests.campaigns.pipeline_differential``.

After a random history of groups and transactions with real clients, on odradek and on Apache Kafka:

    answers       the cluster's own responses about groups, offsets and transactional ids agree with the tables
    formatters    the output of Kafka's message formatters for the coordinators' topics agrees with ingest, record by record

Prints the rows compared and the differences. The exit status is 1 if there are any.
"""
