"""axe-core in a tab: what it finds against WCAG, levels A and AA, and the best practices that it knows."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.needed import MissingTool

_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# The rules whose outcome depends on widths and colours.
_LOOKS = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]
# Colours take axe most of its time, and a table's later rows have the colours of its first ones.
_LATER_ROWS = "tbody tr:nth-child(n+9)"
_RUN = """([only, exclude]) =>
    axe.run({exclude}, {runOnly: only, resultTypes: ["violations"]}).then(found => found.violations.map(each =>
        `${each.id}: ${each.help}: ${each.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(" | ")}`))"""


@cache
def _script():
    found = find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        raise MissingTool("there is no axe-core: pip install axe-playwright-python")
    return Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")


async def violations(tab, *, looks_only=False):
    """The violations on the page as it is now. ``looks_only``: by the rules of ``_LOOKS``, without the later rows of tables.

    The page's policy is for its own scripts, so this one comes by the debugger.
    """
    if not await tab.page.evaluate("() => 'axe' in window"):
        await tab.page.evaluate(_script())
    only = {"type": "rule", "values": _LOOKS} if looks_only else {"type": "tag", "values": _TAGS}
    return await tab.page.evaluate(_RUN, [only, [_LATER_ROWS] if looks_only else []])
