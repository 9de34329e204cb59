"""The same requests to odradek and to Apache Kafka, and the answers compared.

A *script* (``script``) is a list of requests, as data: placeholders stand for names and for what earlier answers said.
``cases`` makes all of them, each from its API, version or seed. The *driver* sends a script to one broker and notes an answer
for each request, in canonical form (``canonical``): ids, times and what belongs to a node are made equal. ``compare`` finds
what differs. Each difference is named by a row in docs/differences-all.md, or fails.

The short form sends a part of it to odradek alone, and compares with what Kafka answered when ``recorded.json.xz`` was written.
A change of the requests needs that anew: ``make campaign NAME=wire-differential ARGS=--record``. A change of odradek's answers
does not.

With ``--brokers 3`` the scripts of more than one request go to clusters (``clusters``). The short form compares a cluster of
odradek with what one broker of Kafka answered.

What is not compared: the order of a response's array elements, the wording of error messages (but of client quotas'), and how
long an answer takes.
"""
