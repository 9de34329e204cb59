"""Who may do what: access control lists, and the authorizer that decides by them (Kafka's StandardAuthorizer).

Pure: no sockets, no files, no clock. What each API asks the authorizer is in ``broker.authorization``.
"""
