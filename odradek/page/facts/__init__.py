"""The facts that the page shows: async functions that return frozen dataclasses, a module for each view. No HTML.

Facts of the cluster come by Kafka's protocol, with the rights of the page's user. Facts that only this broker knows come from
its own objects, and only for a user who may see them by the protocol, too: ``DESCRIBE`` on the cluster for clients, errors and
requests, on the topic for its segments. Whatever ACLs hide is absent, and ``is_partial`` says so.

Reading changes nothing. Long readings go on in slices of a few milliseconds.
"""
