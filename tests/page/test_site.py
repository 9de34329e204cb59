"""The page's doors: sessions, forms, logins, the token, and what is refused."""

import json
import re

import pytest

from odradek.page.render import STATIC
from odradek.testing import Broker
from tests.page.browsing import TOKEN, served_page
from tests.page.surfing import Surfer

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required user_ada='pw' user_admin='pw';"


@pytest.fixture
async def site():
    async with Broker(topics={"orders": 2}) as broker, served_page(broker) as served:
        yield served


@pytest.fixture
def surfer(site):
    return Surfer(site.url)


async def test_a_change_is_made_once_it_is_confirmed(site, surfer):
    await surfer.get("/page/topic?name=orders")
    asked = await surfer.post("/page/do/create-topic", {"name": "new", "partitions": "3"})
    assert asked.status == 200
    assert "Create the topic?" in asked.text
    assert "new" not in await site.broker.topics
    done = await surfer.do("create-topic", name="new", partitions="3")
    assert "Created the topic new." in done.text
    assert (await site.broker.topics)["new"].partitions == 3


@pytest.mark.parametrize("csrf", ["", "0" * 64, "\N{SNOWMAN}"])
async def test_a_form_without_the_sessions_token_is_refused(site, surfer, csrf):
    await surfer.get()
    refused = await surfer.do("create-topic", name="new", csrf=csrf)
    assert refused.status == 403
    assert "new" not in await site.broker.topics


async def test_the_token_of_another_session_is_refused(site, surfer):
    other = Surfer(site.url)
    await surfer.get("/page/topic?name=orders")
    await other.get("/page/topic?name=orders")
    surfer.csrf = other.csrf
    assert (await surfer.do("create-topic", name="new")).status == 403


async def test_a_form_of_a_page_elsewhere_is_refused(site, surfer):
    await surfer.get("/page/topic?name=orders")
    refused = await surfer.post("/page/do/create-topic", {"name": "new"}, {"Origin": "http://evil.example"})
    assert refused.status == 403
    assert (await surfer.get("/", {"Host": "evil.example"})).status == 403


async def test_the_cookie_is_for_this_port_only_and_not_for_scripts(site, surfer):
    cookie = (await surfer.get()).headers["Set-Cookie"]
    assert re.fullmatch(rf"odradek_{site.port.port}=[\w-]{{43}}; Path=/; HttpOnly; SameSite=Strict", cookie)
    assert (await surfer.get()).headers["Set-Cookie"] is None


async def test_a_link_on_another_site_keeps_the_session(site, surfer):
    # A strict cookie does not come with such a request, which must not replace it.
    answer = await Surfer(site.url).get("/", {"Sec-Fetch-Site": "cross-site"})
    assert "refresh" in answer.text
    assert answer.headers["Set-Cookie"] is None


async def test_no_page_has_a_script_or_a_style_of_its_own(site, surfer):
    await site.broker.produce("orders", [(b"<script>alert(1)</script>", b"<img src=x onerror=alert(1)>")])
    for path in ("/", "/page/topic?name=orders", "/page/record?name=orders&partition=0&offset=0", "/page/cluster", "/page/login"):
        answer = await surfer.get(path)
        assert answer.headers["Content-Security-Policy"] == "default-src 'self'; frame-ancestors 'none'"
        assert not re.search(r"<script(?! src=)|<style|<[^>]* (style|on\w+)=", answer.text)


async def test_hidden_characters_are_shown_and_texts_are_isolated(site, surfer):
    await site.broker.produce("orders", ["safe\N{RIGHT-TO-LEFT OVERRIDE}exe.txt \N{ZERO WIDTH SPACE}"], partition=0)
    text = (await surfer.get("/page/record?name=orders&partition=0&offset=0")).text
    assert "safe<i>U+202E</i>exe.txt <i>U+200B</i>" in text
    rows = (await surfer.get("/page/topic?name=orders")).text
    assert "<bdi>safe<i>U+202E</i>exe.txt <i>U+200B</i></bdi>" in rows


async def test_a_large_value_is_cut_on_the_page_and_whole_in_the_download(site, surfer):
    value = b"\xff" + b"x" * 1_000_000
    await site.broker.produce("orders", [value], partition=0)
    assert len((await surfer.get("/page/topic?name=orders")).body) < 20_000
    assert len((await surfer.get("/page/record?name=orders&partition=0&offset=0")).body) < 100_000
    saved = await surfer.get("/page/file/bytes?name=orders&partition=0&offset=0")
    assert saved.body == value
    assert saved.headers["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/page/topic?name=none", "none: there is no such topic"),
        ("/page/topic", "the address names no topic"),
        ("/page/topic?name=orders&before=x", "'x' is not a place"),
        ("/page/topic?name=orders&offset=x", "'x' is not an offset"),
        ("/page/topic?name=orders&time=x", "'x' is not a time"),
        ("/page/group?id=none", "none: there is no such group"),
        ("/page/record?name=orders&partition=0&offset=9", "9"),
        ("/page/none", "there is no such page"),
    ],
)
async def test_a_wrong_address_gets_one_line(surfer, path, problem):
    answer = await surfer.get(path)
    assert answer.status == 404
    assert problem in answer.problem


async def test_a_failed_change_says_why(surfer):
    await surfer.get("/page/topic?name=orders")
    for change, fields, reason in (
        ("create-topic", {"name": "orders"}, "exists"),
        ("create-topic", {"name": "new", "partitions": "many"}, "partitions must be a whole number of at least 1, not 'many'"),
        ("produce", {"name": "orders", "encoding": "hex", "value": "xyz"}, "this is not hex: 'xyz'"),
        ("set-offsets", {"id": "g", "to": "start"}, "no partition is chosen"),
        ("abort", {"transactional_id": "none"}, "there is no such transactional id"),
    ):
        answer = await surfer.post(f"/page/do/{change}", {"confirmed": "yes", **fields}, {"Accept": "application/json"})
        told = json.loads(answer.body)
        assert (answer.status, told["failed"]) == (422, True)
        assert reason in told["text"]


async def test_levers_need_the_control_apis_token(site, surfer):
    await surfer.get("/page/levers")
    assert (await surfer.do("freeze")).status == 403
    wrong = await surfer.post("/page/token", {"token": "wrong"})
    assert wrong.status == 403
    assert "not the token" in wrong.problem
    assert (await surfer.post("/page/token", {"token": TOKEN})).status == 303
    await surfer.get("/page/levers")
    assert "stands still" in (await surfer.do("freeze")).text
    assert site.broker.clock.is_frozen


async def test_a_read_only_page_has_no_way_to_change_anything():
    async with Broker(topics={"orders": 1}) as broker, served_page(broker, is_read_only=True) as served:
        surfer = Surfer(served.url)
        for path in ("/", "/page/topic?name=orders", "/page/topic-configs?name=orders", "/page/transactions", "/page/levers"):
            assert "/page/do/" not in (await surfer.get(path)).text
        await surfer.get("/page/login")
        refused = await surfer.do("delete-topic", name="orders")
        assert refused.status == 403
        assert "--page-read-only" in refused.text
        assert (await surfer.post("/page/token", {"token": TOKEN})).status == 403


@pytest.fixture
async def secured():
    configs = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
    }
    async with Broker(configs=configs) as broker, served_page(broker) as served:
        yield served


async def test_where_the_listener_wants_a_login_the_page_asks_for_it(secured):
    surfer = Surfer(secured.url)
    sent_away = await surfer.get("/page/cluster")
    assert (sent_away.status, sent_away.headers["Location"]) == (303, "/page/login?to=/page/cluster")
    await surfer.get(sent_away.headers["Location"])
    for user, password in (("ada", "wrong"), ("nobody", "pw")):
        refused = await surfer.post("/page/login", {"user": user, "password": password, "to": "/page/cluster"})
        assert (refused.status, "Authentication failed" in refused.problem) == (403, True), refused.problem
    before = surfer.csrf
    accepted = await surfer.post("/page/login", {"user": "ada", "password": "pw", "to": "/page/cluster"})
    assert (accepted.status, accepted.headers["Location"]) == (303, "/page/cluster")
    # A new session has a new id.
    page = await surfer.get("/page/cluster")
    assert surfer.csrf != before
    assert "Log out" in page.text
    assert "ACLs hide a part" in page.text
    await surfer.post("/page/logout", {"x": "y"})
    assert (await surfer.get("/page/cluster")).status == 303


async def test_a_user_may_do_on_the_page_what_acls_allow(secured):
    ada, admin = Surfer(secured.url), Surfer(secured.url)
    for surfer, user in ((ada, "ada"), (admin, "admin")):
        await surfer.get("/page/login")
        assert (await surfer.post("/page/login", {"user": user, "password": "pw", "to": "//evil.example"})).headers[
            "Location"
        ] == "/"
        await surfer.get("/")
    assert "AUTHORIZATION_FAILED" in (await ada.do("create-topic", name="mine")).text
    assert "Created" in (await admin.do("create-topic", name="mine")).text
    assert "mine" not in (await ada.get("/")).text
    assert "mine" in (await admin.get("/")).text


def test_the_pages_files_are_small():
    sizes = {path.name: path.stat().st_size for path in STATIC.iterdir()}
    assert sizes["page.css"] < 15_000
    assert sizes["page.js"] < 15_000
    assert sum(sizes.values()) < 32_000
