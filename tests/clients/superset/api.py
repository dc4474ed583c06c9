"""Superset's REST API, as a program of a user's speaks to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http.cookiejar import CookieJar
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

Json = dict[str, Any]


class Refused(Exception):
    """Superset said no; its body says why."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(f"{status}: {json.dumps(body)[:2000]}")
        self.status, self.body = status, body

    @property
    def messages(self) -> str:
        """What a person is shown."""
        return "\n".join(error["message"] for error in self.body["errors"])


@dataclass(frozen=True)
class User:
    """One who has logged in."""

    address: str
    opener: OpenerDirector
    headers: dict[str, str]

    def get(self, path: str) -> Json:
        return self.ask("GET", path)

    def post(self, path: str, body: Json) -> Json:
        return self.ask("POST", path, body)

    def put(self, path: str, body: Json) -> Json:
        return self.ask("PUT", path, body)

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.address + quote(path, safe="/?=&%"), data, self.headers, method=method)
        try:
            with self.opener.open(request, timeout=120) as answer:
                told: Json = json.loads(answer.read())
                return told
        except HTTPError as error:
            raise Refused(error.code, read_body(error.read())) from None


def read_body(text: bytes) -> Json:
    """Older parts of the API tell one message, newer ones a list of errors."""
    body: Json = json.loads(text)
    if "errors" not in body:
        message = body.get("message", "")
        body["errors"] = [{"message": message if isinstance(message, str) else json.dumps(message)}]
    return body


def log_in(address: str, name: str, password: str) -> User:
    opener = build_opener(HTTPCookieProcessor(CookieJar()))
    json_only = {"Content-Type": "application/json", "Accept": "application/json", "Referer": address}
    nobody = User(address, opener, json_only)
    who = {"username": name, "password": password, "provider": "db", "refresh": False}
    token = nobody.post("/api/v1/security/login", who)["access_token"]
    user = User(address, opener, {**json_only, "Authorization": f"Bearer {token}"})
    csrf = user.get("/api/v1/security/csrf_token/")["result"]
    return User(address, opener, {**user.headers, "X-CSRFToken": csrf})
