"""The site that `make docs` builds has no warning, misses nothing and asks no other host. The pictures are as their texts say."""

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import odradek.testing
from benchmarks.load_tool import MissingTool
from odradek.cli.main import command
from tests.broker_process import REPOSITORY
from tests.cases import each_case
from tests.chromium import Chromium
from tests.project.documents import DOCS
from tests.project.test_tools import tool

PICTURES = sorted((DOCS / "pictures").glob("*.txt"))
# Assets that a page loads when it is opened, unlike a link that a reader follows.
LOADED = re.compile(r"<(?:script|img|iframe|source|object)\b[^>]*?\b(?:src|data)=\"([^\"]+)\"|<link\b[^>]*?\bhref=\"([^\"]+)\"")
LOADED_BY_CSS = re.compile(r"(?:url\(|@import)\s*[\"']?([^\"')\s]+)")
FOREIGN = re.compile(r"(?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does. The build fails at the first warning."""
    if importlib.util.find_spec("sphinx") is None:
        raise MissingTool("there is no Sphinx: make docs")
    out = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--fail-on-warning", "--fresh-env", "--doctree-dir", str(out / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(DOCS), str(out / "html")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return out / "html"


@pytest.mark.timeout(240)
@pytest.mark.xdist_group("site")
def test_the_site_has_every_page_and_asks_no_other_host(site):
    pages = {page.stem: page.read_text(encoding="utf-8") for page in site.glob("*.html")}
    assert {page.stem for page in DOCS.glob("*.md")} <= pages.keys()
    loaded = {(name, url) for name, page in pages.items() for pair in LOADED.findall(page) for url in pair}
    loaded |= {(css.name, url) for css in site.rglob("*.css") for url in LOADED_BY_CSS.findall(css.read_text())}
    assert len(loaded) > len(pages)
    assert [(name, url) for name, url in loaded if FOREIGN.match(url)] == []


@pytest.mark.timeout(240)
@pytest.mark.xdist_group("site")
def test_the_site_has_the_whole_test_kit(site):
    page = (site / "test-kit.html").read_text(encoding="utf-8")
    assert [name for name in odradek.testing.__all__ if f'id="odradek.testing.{name}"' not in page] == []
    assert 'id="odradek.testing.ThreadedBroker.wait_for"' in page


@pytest.mark.timeout(240)
@pytest.mark.xdist_group("site")
def test_the_search_finds_a_page_without_a_network_or_a_server(site, tmp_path):
    opened = Chromium(tmp_path / "chromium").open(site / "search.html", query="q=high+watermark")
    assert "Architecture" in re.sub(r"<[^>]+>", " ", opened.elements.partition('id="search-results"')[2])


@each_case("source", PICTURES, ids=lambda path: path.stem)
def test_a_picture_is_what_its_text_says(source: Path):
    drawn = tool("draw").drawn(source.read_text(encoding="utf-8"))
    assert source.with_suffix(".svg").read_text(encoding="utf-8") == drawn, "python tools/draw.py"


def test_the_rooms_of_the_picture_import_only_from_lower_floors():
    lines = [line for line in (DOCS / "pictures" / "rooms.txt").read_text().splitlines()[1:] if line and ": " not in line]
    floors = {name: range(top, bottom) for name, (_, top, _, bottom) in tool("draw").floors(lines).items()}
    package = REPOSITORY / "odradek"

    def room_of(path: str) -> str:
        return next((room for room in floors if path == room or path.startswith(f"{room}/")), "")

    wrong = {
        (importer, imported)
        for module in package.rglob("*.py")
        if (importer := room_of(module.relative_to(package).as_posix()))
        for name in re.findall(r"^ *from odradek\.([\w.]+) import", module.read_text(), re.MULTILINE)
        if (imported := room_of(name.replace(".", "/"))) not in ("", importer)
        if floors[importer].stop > floors[imported].start
    }
    assert wrong == set()


def test_no_message_of_the_product_names_a_file_of_the_repository():
    named = re.compile(r"\b(docs|tests|benchmarks|tools)/|\b[\w-]+\.md\b")
    texts = {
        (path.relative_to(REPOSITORY).as_posix(), node.value)
        for path in (REPOSITORY / "odradek").rglob("*.py")
        if path.parts[-2:] not in {("metrics", "table.py"), ("config", "document.py")}
        for node in _constants(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert [text for text in sorted(texts) if named.search(text[1])] == []
    assert [text for text in _helps(command, click.Context(command, info_name="odradek")) if named.search(text)] == []


def _constants(module: ast.Module) -> Iterator[ast.Constant]:
    """Yield the strings of a module but its docstrings."""
    for node in ast.walk(module):
        parts = ast.iter_child_nodes(node) if not isinstance(node, ast.Expr) else ()
        yield from (part for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str))


def _helps(group: click.Group, context: click.Context) -> Iterator[str]:
    yield group.get_help(context)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        below = click.Context(found, info_name=name, parent=context)
        yield from _helps(found, below) if isinstance(found, click.Group) else [found.get_help(below)]
