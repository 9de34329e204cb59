"""What clients said to a broker, what it answered, and what its coordinators decided.

    with Broker(timeline=True) as broker:
        application(broker.bootstrap_servers)
        print(broker.timeline.where(group="billing"))
        broker.timeline.save("session.jsonl")

``events`` is what a timeline consists of, ``timeline`` looks at it (filters, text, files; ``diagram`` draws it), ``live`` is the
one of a broker that runs. ``replay`` sends the requests of a timeline to any broker, and says which answers are others.
"""
