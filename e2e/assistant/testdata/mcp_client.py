"""The Model Context Protocol's Python SDK, as its users use it, against the assistant: over HTTP, or by its command over
stdin and stdout. Prints one JSON object of what it saw."""

import asyncio
import json
import sys

import httpx2
import mcp
from mcp.client.streamable_http import streamable_http_client

way, target, address, key, line = sys.argv[1:6]


def transport():
    if way == "http":
        return streamable_http_client(address + "/mcp", http_client=httpx2.AsyncClient(headers={"Authorization": "Bearer " + key}, timeout=60))
    return mcp.StdioServerParameters(command=target, args=["mcp"], env={"ASSISTANT_URL": address, "ASSISTANT_KEY": key})


async def main():
    async with mcp.Client(transport()) as client:
        tools = (await client.list_tools()).tools
        found = await client.call_tool("diagnose", {"namespace": "shop"})
        proposed = await client.call_tool("propose_change", {"kubectl": line, "reason": "a test"})
        refused = await client.call_tool("propose_change", {"kubectl": "kubectl get pods"})
        print(json.dumps({
            "tools": {t.name: t.annotations.read_only_hint for t in tools},
            "schemas": all(t.input_schema and t.output_schema for t in tools),
            "diagnosis": found.structured_content, "proposal": proposed.structured_content,
            "refused": refused.is_error and refused.content[0].text,
        }))


asyncio.run(main())
