"""The page: a view of a broker and its cluster in a browser.

``facts`` reads, ``actions`` changes. Both act as a Kafka client with the rights of the page's user.
"""
