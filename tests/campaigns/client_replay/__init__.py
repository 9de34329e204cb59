"""What clients said to odradek, said again: to another odradek, and to Apache Kafka.

A session (``sessions``) is what an application does with a client library: topics, an idempotent and a transactional producer, a
consumer in a group, a commit within a transaction, a reader of committed records. It runs against odradek with a
timeline, which is replayed. To another odradek there is no difference; to Apache Kafka, each has a row in
docs/differences-all.md.

With ``--brokers 3`` the session is replayed to a cluster of each make (``clusters``). The recorded answers are changed before:
they name the cluster's leaders, replicas and coordinators.

Either way a replay to odradek must find the planted faults (``faulty``).

The short form is the half without Kafka, at one broker and at three. The other half: ``make campaign NAME=client-replay``.
"""
