"""What each API asks the authorizer: a rule for each, in front of its handler, where there is an authorizer.

A rule takes the request apart: what the client may do goes on to the handler, what it may not is answered by the rule, and the
two answers are joined. A client that may not know of a resource is refused before anybody looks whether it is there. ``table``
says which rule an API has, and wraps the handlers; without an authorizer nothing of this room is imported.

Source: ``KafkaApis``, ``ControllerApis`` and ``AclApis`` of Apache Kafka 4.
"""
