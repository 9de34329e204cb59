"""A broker in this process with its HTTP port, and a client of that as simple as curl.

Each answer that goes well is compared with the OpenAPI description.
"""

import asyncio
import json
import re
from contextlib import asynccontextmanager
from functools import cache
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest_asyncio

from odradek.http.access import Access
from odradek.http.app import HttpApplication
from odradek.http.control.api import ControlApi
from odradek.http.description import PREFIX, description
from odradek.http.port import HttpPort
from odradek.testing import Broker
from tests.http.schema import mismatch

TOKEN = "let me in"


class Client:
    """Asks a control API: each call returns (status, answer). Paths are those below /v1, but for /ready and /openapi.json."""

    def __init__(self, url, token=TOKEN, context=None):
        self.url = url
        self.context = context
        self.token = token

    async def __call__(self, method, path, body=None, *, token=None, data=None):
        data = json.dumps(body).encode() if body is not None else data
        path = path if path in ("/ready", "/openapi.json") else PREFIX + path
        request = Request(
            self.url + path, data, {"Authorization": f"Bearer {self.token if token is None else token}"}, method=method
        )
        return await asyncio.to_thread(self._ask, request, path)

    async def done(self, method, path, body=None):
        """The answer to what must go well."""
        status, answer = await self(method, path, body)
        assert status == 200, answer
        return answer

    def _ask(self, request, path):
        try:
            with urlopen(request, timeout=20, context=self.context) as response:
                answer = json.load(response)
        except HTTPError as error:
            return error.code, json.load(error)
        assert_as_described(request.method, path, answer)
        return 200, answer


@cache
def described():
    return description()


def assert_as_described(method, path, answer):
    if path == "/openapi.json":
        return
    path = re.sub(r"^/v1/forks/\d+/", "/v1/", path.partition("?")[0])
    for template, operations in described()["paths"].items():
        if method.lower() in operations and re.fullmatch(re.sub(r"{\w+}", "[^/]+", template), path):
            schema = operations[method.lower()]["responses"]["200"]["content"]["application/json"]["schema"]
            assert mismatch(schema, answer, described()["components"]["schemas"]) is None, (method, path, answer)
            return
    raise AssertionError((method, path))


@asynccontextmanager
async def served(broker, access, context=None):
    """The port of a broker."""
    control, port = ControlApi(broker), HttpPort(context)
    await port.bind("127.0.0.1", [0])
    port.serve(HttpApplication(control, access).app)
    yield port
    await port.close()
    await control.close()


@pytest_asyncio.fixture
async def broker():
    async with Broker(topics={"orders": 2}) as broker:
        yield broker


@pytest_asyncio.fixture
async def control(broker):
    async with served(broker, Access(TOKEN)) as port:
        yield Client(port.url)
