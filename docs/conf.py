"""Sphinx's settings for the site that `make docs` builds from this directory.

The pages are plain Markdown, as a Git host shows them. The lists of index.md are the navigation. A link to a file that is no page
becomes plain text. commands.md gets the help of each command.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import click
from sphinx.application import Sphinx

from odradek import __version__
from odradek.cli.main import command

HERE = Path(__file__).parent

project = "odradek"
author = "the odradek authors"
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
exclude_patterns = ["examples", "pictures"]

# The anchors of headings that links within the pages use.
myst_heading_anchors = 4

autodoc_default_options = {"members": True, "inherited-members": "Protocol,Exception,tuple"}
autodoc_member_order = "bysource"
autodoc_mock_imports = ["pytest"]
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"odradek {release}"
html_copy_source = False
html_show_sphinx = False

SECTION = re.compile(r"^## (.+)\n\n((?:- .+\n)+)", re.MULTILINE)
ITEM = re.compile(r"^- \[(.+?)\]\((.+?)\.md\)", re.MULTILINE)
OUTSIDE = re.compile(r"(?<!!)\[([^]]+)\]\(\.\./[^)]*\)")


def read_page(_app: Sphinx, page: str, source: list[str]) -> None:
    """Unlink files that are no pages, make the lists of index.md the navigation, and fill commands.md."""
    text = OUTSIDE.sub(r"\1", source[0])
    if page == root_doc:
        text = SECTION.sub(_section, text)
    if page == "commands":
        text += "".join(_helps(command, click.Context(command, info_name="odradek", max_content_width=88)))
    source[0] = text


def _helps(group: click.Group, context: click.Context) -> Iterator[str]:
    """Yield a section for each command of a group, and for the commands below it."""
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if found is None:
            continue
        below = click.Context(found, info_name=name, parent=context, terminal_width=88)
        yield f"\n{'#' * below.command_path.count(' ')}# {below.command_path}\n\n```text\n{found.get_help(below)}\n```\n"
        if isinstance(found, click.Group):
            yield from _helps(found, below)


def _section(found: re.Match[str]) -> str:
    entries = "\n".join(f"{title} <{page}>" for title, page in ITEM.findall(found[2]))
    return f"{found[0]}\n```{{toctree}}\n:hidden:\n:caption: {found[1]}\n\n{entries}\n```\n"


def read_docstring(_app: Sphinx, _kind: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Show the indented examples of a docstring as code."""
    was_code = False
    for number in range(len(lines) - 1, -1, -1):
        is_code = lines[number].startswith("    ")
        if was_code and not is_code and lines[number]:
            lines[number + 1 : number + 1] = ["", "::", ""]
        was_code = is_code or (was_code and not lines[number])


def setup(app: Sphinx) -> None:
    """Connect both to Sphinx."""
    app.connect("source-read", read_page)
    app.connect("autodoc-process-docstring", read_docstring)
