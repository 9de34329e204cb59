"""The pipeline against the cluster it reads: ``python -m tests.campaigns.pipeline_differential``.

After a random life of groups and transactions with real clients, on odradek and on Apache Kafka:

    answers       what the cluster itself says of groups, offsets and transactional ids is how things stand in the tables
    formatters    what Kafka's message formatters print of the coordinators' topics is what ingest has decoded, record by record

Prints the rows compared and the differences, and ends with 1 if there are any.
"""
