"""A browser as simple as curl with a jar of cookies: it loads pages and sends forms, and runs no scripts."""

import asyncio
import re
from html import unescape
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, Request, build_opener

_CSRF = re.compile(r'name="csrf" value="(\w+)"')
_PROBLEM = re.compile(r'<p [^>]*class="problem"[^>]*>(.*?)</p>', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


class _Stay(HTTPRedirectHandler):
    """Redirections are answers, too."""

    def redirect_request(self, *_others):
        return None


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def text(self):
        return self.body.decode()

    @property
    def problem(self):
        """The problems that the page shows, as text."""
        return " ".join(unescape(_TAG.sub("", found)) for found in _PROBLEM.findall(self.text)).strip()


class Surfer:
    """A user at ``url`` with cookies of its own."""

    def __init__(self, url):
        self.url = url
        self.csrf = ""
        self._opener = build_opener(HTTPCookieProcessor(), _Stay())

    async def get(self, path="/", headers=None):
        answer = await asyncio.to_thread(self._ask, Request(self.url + path, headers=headers or {}))
        found = _CSRF.search(answer.body.decode(errors="replace"))
        self.csrf = found[1] if found else self.csrf
        return answer

    async def post(self, path, fields, headers=None):
        data = urlencode({"csrf": self.csrf, **fields}, doseq=True).encode()
        return await asyncio.to_thread(self._ask, Request(self.url + path, data, headers or {}, method="POST"))

    async def do(self, change, **fields):
        """Send the form of a change, confirmed."""
        return await self.post(f"/page/do/{change}", {"confirmed": "yes", **fields})

    def _ask(self, request):
        try:
            with self._opener.open(request, timeout=20) as response:
                return Answer(response)
        except HTTPError as error:
            with error:
                return Answer(error)
