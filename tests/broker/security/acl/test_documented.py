"""What docs/acls.md shows is so."""

import json

from odradek.common.config import load
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.message_types.metadata import MetadataRequestTopic
from tests.broker.security.acl.bed import Secured, told_lines
from tests.project.documents import DOCS, code_blocks

PAGE = DOCS / "acls.md"


async def test_the_python_example_tells_what_alice_is_told():
    [source] = code_blocks(PAGE, "python")
    scope = {}
    exec(compile(source, PAGE, "exec"), scope)
    assert await scope["what_alice_is_told"]() == "TOPIC_AUTHORIZATION_FAILED"


def test_the_configuration_is_one():
    [properties] = code_blocks(PAGE, "properties")
    config = load(properties)
    assert config["super.users"] == "User:admin;User:ANONYMOUS"
    assert config.warnings == ()


def test_the_line_of_the_log_is_one():
    [line] = code_blocks(PAGE, "json")
    shown = json.loads(line)
    with told_lines() as lines:
        Secured().ask(ApiKey.METADATA, topics=[MetadataRequestTopic(name="orders")])
    event, fields = lines[-1]
    assert shown == fields | {"event": event, "level": "info", "timestamp": "..."}
