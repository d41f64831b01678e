"""A relay in front of the hub that gives its things the names that the conformance suite asks for: the suite wants a tool
`test_simple_text` and a resource `test://static-text`, and a hub has `ping` and a lamp. Nothing but names is changed."""

import contextlib
import json
import threading

import httpx2 as httpx
import uvicorn
from home import free_port, until
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

LAMP = {"device": "lamp", "to": "on"}
PUMP = {"device": "pump", "to": "on"}
# What the suite calls -> what the hub has, and the arguments.
TOOLS = {
    "test_simple_text": ("ping", {}),
    "test_error_handling": ("switch_device", PUMP),
    "test_tool_with_progress": ("switch_device", LAMP),
}
RESOURCES = {
    "test://static-text": "twin://devices/lamp",
    "test://watched-resource": "twin://devices/lamp",
    "test://template/123/data": "twin://devices/123",
}
# One hop's own business (RFC 9110, 7.6.1), and what the relay's own client sets.
HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "accept-encoding", "content-encoding"}


def renamed(message):
    """A request of the suite in the hub's names."""
    if isinstance(message, list) or not isinstance(params := message.get("params"), dict):
        return message
    if message.get("method") == "tools/call" and params.get("name") in TOOLS:
        params["name"], params["arguments"] = TOOLS[params["name"]]
    if params.get("uri") in RESOURCES:
        params["uri"] = RESOURCES[params["uri"]]
    if message.get("method") == "completion/complete":
        params["ref"] = {"type": "ref/resource", "uri": "twin://devices/{id}"}
        params["argument"] = {"name": "id", "value": "la"}
    return message


def headers_of(message, headers):
    """The headers of 2026-07-28 repeat names of the body."""
    params = message.get("params") or {} if isinstance(message, dict) else {}
    name = params.get("name") or params.get("uri")
    if "mcp-name" in headers and name:
        headers["mcp-name"] = name
    return headers


class Renaming:
    """The relay, on a port of its own, in a thread."""

    def __init__(self, hub):
        self.hub, self.port = hub, free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.client = httpx.AsyncClient(timeout=None, trust_env=False)
        app = Starlette(routes=[Route("/mcp", self.pass_on, methods=["GET", "POST", "DELETE"])])
        config = uvicorn.Config(app, host="127.0.0.1", port=self.port, log_level="error", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        until("the relay listens", lambda: self.server.started)

    async def pass_on(self, request):
        body = await request.body()
        headers = {name: value for name, value in request.headers.items() if name not in HOP}
        with contextlib.suppress(ValueError):
            message = renamed(json.loads(body))
            body, headers = json.dumps(message).encode(), headers_of(message, headers)
        sent = self.client.build_request(request.method, self.hub, headers=headers, content=body or None)
        answer = await self.client.send(sent, stream=True)
        back = {name: value for name, value in answer.headers.items() if name not in HOP}

        async def stream():
            try:
                async for piece in answer.aiter_raw():
                    yield piece
            finally:
                await answer.aclose()

        return StreamingResponse(stream(), status_code=answer.status_code, headers=back)

    def stop(self):
        self.server.should_exit = True
        self.thread.join(10)
