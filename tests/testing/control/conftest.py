"""A broker in this process with its control interface, and a client of that as simple as curl."""

import asyncio
import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest_asyncio

from odradek.testing import Broker
from odradek.testing.control.server import ControlServer

TOKEN = "let me in"


class Client:
    """Asks a control interface: each call returns (status, answer)."""

    def __init__(self, url, token=TOKEN, context=None):
        self.url = url
        self.context = context
        self.token = token

    async def __call__(self, method, path, body=None, *, token=None, data=None):
        data = json.dumps(body).encode() if body is not None else data
        request = Request(
            self.url + path, data, {"Authorization": f"Bearer {self.token if token is None else token}"}, method=method
        )
        return await asyncio.to_thread(self._ask, request)

    async def done(self, method, path, body=None):
        """The answer to what must go well."""
        status, answer = await self(method, path, body)
        assert status == 200, answer
        return answer

    def _ask(self, request):
        try:
            with urlopen(request, timeout=20, context=self.context) as response:
                return response.status, json.load(response)
        except HTTPError as error:
            return error.code, json.load(error)


@pytest_asyncio.fixture
async def broker():
    async with Broker(topics={"orders": 2}) as broker:
        yield broker


@pytest_asyncio.fixture
async def control(broker):
    server = ControlServer(broker, TOKEN)
    server.start("127.0.0.1", 0)
    yield Client(server.url)
    await server.close()
