"""The recorded traffic of a broker: clients' requests, its answers, and its coordinators' decisions.

    with Broker(timeline=True) as broker:
        application(broker.bootstrap_servers)
        print(broker.timeline.where(group="billing"))
        broker.timeline.save("session.jsonl")

``events`` has the events of a timeline. ``timeline`` filters, prints and saves them, and ``diagram`` draws them. ``live``
records them from a running broker. ``replay`` sends the requests of a timeline to any broker, and reports the answers that
differ.
"""
