"""The jobs killed at random: ``python -m tests.campaigns.pipeline_kills``.

A broker holds a synthetic history. One run of ingest, tables and findings is undisturbed. Other runs, over small micro-batches,
are killed by SIGKILL at random moments, with the JVM and Python's workers, and restarted; sometimes the broker is killed, too.
At the end every table, ``raw`` and the findings have the same rows as in the undisturbed run, and each finding's message is on
its topic exactly once.
"""
