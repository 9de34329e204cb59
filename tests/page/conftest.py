"""A broker of the test kit, a page's source of facts for it, and real clients on the same loop."""

import asyncio
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from odradek.client.cluster_client import open_cluster
from odradek.page.facts.source import Source
from odradek.page.watch import PAGE_CLIENT_ID, Watch
from odradek.testing import Broker
from tests.needed import MissingTool, needed
from tests.page.browsing import Tab, served_page


def address_of(broker):
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return host, int(port)


@asynccontextmanager
async def page_of(broker, login=None):
    """Yield the source of facts of one user, while somebody looks at the page."""
    watch = Watch(broker)
    watch.enter()
    async with open_cluster([address_of(broker)], PAGE_CLIENT_ID, login=login) as cluster:
        yield Source(cluster, broker, watch)
    watch.leave()


@pytest.fixture
async def broker():
    # Members of the consumer protocol learn of their partitions by heartbeats, every five seconds by default.
    heartbeats = {"group.consumer.min.heartbeat.interval.ms": 100, "group.consumer.heartbeat.interval.ms": 100}
    async with Broker(configs={"group.initial.rebalance.delay.ms": 0, **heartbeats}) as broker:
        yield broker


@pytest.fixture
async def source(broker):
    async with page_of(broker) as source:
        yield source


@asynccontextmanager
async def producing(broker, **settings):
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, **settings)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def consuming(broker, *topics, **settings):
    consumer = AIOKafkaConsumer(
        *topics, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", enable_auto_commit=False, **settings
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def until(condition, within_s=40.0):
    """Return what ``condition`` returns once that is true."""
    async with asyncio.timeout(within_s):
        while not (found := await condition()):  # noqa: ASYNC110  nobody tells when it has become true
            await asyncio.sleep(0.01)
    return found


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium():
    """The browser, which reaches no network. Skips where it, or Playwright, is missing."""
    path = needed("chromium", "chromium-browser", "google-chrome")
    try:
        from playwright.async_api import async_playwright
    except ImportError as error:
        raise MissingTool("there is no Playwright: pip install playwright") from error
    arguments = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def served():
    """The page of a new broker."""
    async with Broker(configs={"group.initial.rebalance.delay.ms": 0}) as broker, served_page(broker) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="session")
async def tab(chromium, served):
    """A tab at ``served``. Its console must stay empty."""
    async with tab_of(chromium, served) as tab:
        yield tab
    assert tab.complaints == []


@asynccontextmanager
async def tab_of(chromium, served, **settings):
    """A tab with its own profile at a page."""
    context = await chromium.new_context(viewport={"width": 1280, "height": 860}, reduced_motion="reduce", **settings)
    try:
        yield Tab(await context.new_page(), served.url)
    finally:
        await context.close()
