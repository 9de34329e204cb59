"""What the documents have people type can be typed."""

import re
import shlex

import click

from odradek.cli.main import command
from tests.cases import each_case
from tests.project.documents import DOCS, README, code_blocks

DOCUMENTS = [README, *sorted(DOCS.glob("*.md"))]
LINES = [
    (path.name, re.sub(r" (\d?>>?) ?\S+( &)?$| &$", "", line.removeprefix("$ odradek ")))
    for path in DOCUMENTS
    for block in code_blocks(path, "console")
    for line in re.sub(r"\\\n\s*", "", block).splitlines()
    if line.startswith("$ odradek ")
]


@each_case(("document", "line"), LINES, ids=lambda value: value)
def test_every_command_in_the_documents_is_one_that_can_be_said(document, line):
    context, arguments = command.make_context("odradek", [], resilient_parsing=True), shlex.split(line)
    while arguments and isinstance(context.command, click.Group):
        name, found, arguments = context.command.resolve_command(context, arguments)
        context = found.make_context(name, arguments, parent=context)
        # A group leaves what behind its own options is said: a command and its arguments.
        arguments = [*context._protected_args, *context.args] if isinstance(found, click.Group) else []


def test_there_are_commands_in_the_documents():
    assert len(LINES) > 15
