"""Faults on demand: rules that match requests, connections or disk operations, and what happens to them.

    fault = broker.faults.add(api="Produce", topic="orders", error="NOT_ENOUGH_REPLICAS", times=2)
    ...
    fault.wait(2)

``vocabulary`` has the keys of a rule, ``faults`` the rules of a broker, ``fault`` the handle of one rule. ``gate`` applies
rules to requests, ``request`` makes the answers with an error. A broker without rules has no gate, and pays nothing.
"""
