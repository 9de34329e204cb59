"""A web page elsewhere, in a real browser, can neither read the port nor do anything by it."""

import asyncio
import re

from odradek.http.access import Access
from tests.chromium import Chromium
from tests.http.conftest import TOKEN, served

# As many ways to ask as a page has without a preflight, and one with it. Each says whether the page could read the answer.
PAGE = """<!doctype html><title>elsewhere</title><body><script>
const base = "URL", results = [];
const attempts = {
  metrics: () => fetch(base + "/metrics"),
  ready: () => fetch(base + "/ready"),
  opaque: async () => { if (!await (await fetch(base + "/v1/topics", {mode: "no-cors"})).text()) throw 0; },
  kill: () => fetch(base + "/v1/broker/kill", {method: "POST", body: "{}"}),
  token: () => fetch(base + "/v1/broker/kill", {method: "POST", headers: {Authorization: "Bearer TOKEN"}}),
};
(async () => {
  for (const [name, attempt] of Object.entries(attempts)) {
    results.push(name + "=" + await attempt().then(() => "read", () => "refused"));
  }
  document.body.textContent = "attempts: " + results.join(" ");
})();
</script>"""


async def test_a_page_elsewhere_reads_and_does_nothing(broker, tmp_path):
    async with served(broker, Access(TOKEN)) as port:
        page = tmp_path / "elsewhere.html"
        page.write_text(PAGE.replace("URL", port.url).replace("TOKEN", TOKEN))
        chromium = Chromium(tmp_path / "home", reached=port.host)
        opened = await asyncio.to_thread(chromium.open, page)
    [attempts] = re.findall(r"attempts: ([\w= ]+)", opened.elements)
    assert attempts == "metrics=refused ready=refused opaque=refused kill=refused token=refused"
    assert broker.is_running
    # The requests did reach the port, which has refused them.
    assert "blocked by CORS policy" in "".join(opened.console)
