"""The jobs killed at random: ``python -m tests.campaigns.pipeline_kills``.

A synthetic history lies in a broker. One run of ingest, tables and findings goes undisturbed, in one piece. Others, over small
micro-batches, are ended with SIGKILL, the JVM, Python's workers and all, at random moments, and begun again; now and then so is
the broker under them. At the end every table has the same rows as that of the undisturbed run, and so have ``raw`` and the
findings; and each message of a finding is on its topic as often as there: once.
"""
