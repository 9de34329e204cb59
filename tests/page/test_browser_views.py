"""All views at once, with a broker at work: what axe-core says of them at three widths, light and dark; and their pictures."""

import pytest

from tests.page.axe import violations
from tests.page.browsing import TOKEN
from tests.page.life import life

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("page-browser"), pytest.mark.timeout(240)]

WIDTHS = (400, 800, 1280)
# The page itself, and each box that is wider inside than outside. The diagram of requests has a lane for each connection.
CUT_OFF = """() => [
    ...document.scrollingElement.scrollWidth > innerWidth ? ["the page"] : [],
    ...[...document.querySelectorAll("main, nav, .scroll, pre, section, form, dl")]
        .filter(box => box.scrollWidth > box.clientWidth + 1 && !box.querySelector(".diagram"))
        .map(box => `${box.outerHTML.slice(0, 80)} by ${box.scrollWidth - box.clientWidth} px`)]"""


async def assert_accessible(tab):
    found = []
    for scheme in ("light", "dark"):
        await tab.page.emulate_media(color_scheme=scheme)
        for width in WIDTHS:
            await tab.page.set_viewport_size({"width": width, "height": 860})
            is_first = (scheme, width) == ("light", WIDTHS[0])
            found += [f"{width} {scheme} {each}" for each in await violations(tab, looks_only=not is_first)]
            found += [f"{width} {scheme} is cut off: {each}" for each in await tab.page.evaluate(CUT_OFF)]
    assert found == []


async def test_every_view_is_accessible_at_every_width(served, tab):
    # Somebody looks from the start on, so each client is known by its requests.
    await tab.go("/page/requests")
    await tab.see_text("live", "live")
    async with life(served.broker):
        for path, part, text, name in (
            ("/", "clients", "confluent-kafka", "overview"),
            ("/page/topic?name=orders", "records", "customer", "topic"),
            ("/page/topic-log?name=stock", "segments", "active", "topic-log"),
            ("/page/topic-configs?name=orders", "own", "retention.ms", "topic-configs"),
            ("/page/group?id=billing", "rebalances", "joined", "group"),
            ("/page/transactions", "open", "bank-7", "transactions"),
            ("/page/requests", "clients", "shop", "requests"),
            ("/page/cluster", "quorum", "leader", "cluster"),
            ("/page/findings", "report", "pipeline", "findings"),
        ):
            await tab.go(path)
            await tab.see_text(part, text)
            await tab.see_text("live", "live")
            await assert_accessible(tab)
            await tab.assert_no_problem()
            await tab.picture(name)
        await tab.go("/page/levers")
        await assert_accessible(tab)
        await tab.page.fill("input[name=token]", TOKEN)
        await tab.page.click("button.go")
        await tab.see_text("clock", "The broker's time")
        await assert_accessible(tab)
        await tab.assert_no_problem()
        await tab.picture("levers")
