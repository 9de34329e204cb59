"""Faults on demand: rules that say at which requests, and what happens then.

    fault = broker.faults.add(api="Produce", topic="orders", error="NOT_ENOUGH_REPLICAS", times=2)
    ...
    fault.wait(2)

``vocabulary`` has the words of a rule, ``faults`` the rules of a broker, ``fault`` the handle of one, ``gate`` what becomes of
requests, ``answers`` the answers with an error. A broker without rules has no gate, and pays nothing.
"""
