"""The OpenAPI document: the file that clients are generated from is the one that the port serves."""

import json

from odradek.http.description import description
from tests.broker_process import REPOSITORY


def test_the_examples_document_is_the_ports():
    """To write it anew: python -m odradek.http.description > examples/openapi.json"""
    assert json.loads((REPOSITORY / "examples" / "openapi.json").read_text()) == description()


def test_every_reference_leads_somewhere():
    found = description()
    references = {node["$ref"] for node in nodes(found) if "$ref" in node}
    assert references
    for reference in references:
        node = found
        for name in reference.removeprefix("#/").split("/"):
            node = node[name]


def test_a_generated_client_has_one_name_for_each_operation():
    names = [operation["operationId"] for path in description()["paths"].values() for operation in path.values()]
    assert len(names) == len(set(names))


def nodes(node):
    """Every object in a document."""
    if isinstance(node, dict):
        yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(each)
