"""The OpenAI SDK, as its users use it, against the assistant. Prints one JSON object of what it saw."""

import asyncio
import json
import os
import sys

import openai

url, key, scope = sys.argv[1:4]
seen = {}


def client(session, **headers):
    return openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0, timeout=60,
                         default_headers={"X-Session-ID": session, **headers})


def messages(text):
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"[context: namespace={scope}] {text}"}]


def streamed(c, text, model="cluster-assistant-openai", **more):
    """The text of a turn, and what the last choice carried."""
    whole, last, roles, usage = "", None, [], None
    for chunk in c.chat.completions.create(model=model, messages=messages(text), stream=True, **more):
        if chunk.usage is not None:
            usage = chunk.usage.model_dump()
        for choice in chunk.choices:
            whole += choice.delta.content or ""
            if choice.delta.role:
                roles.append(choice.delta.role)
            last = choice
    assert last is not None and last.finish_reason == "stop", last
    assert roles == ["assistant"], roles
    return whole, (last.model_extra or {}), usage


c = client("sdk-1")
seen["models"] = sorted(m.id for m in c.models.list())
seen["model"] = c.models.retrieve("cluster-assistant-openai").id

seen["answer"], _, seen["usage"] = streamed(c, "why does api crash?", stream_options={"include_usage": True})
text, extra, _ = streamed(c, "scale web to 2")
seen["asked"] = {"text": text, **{k: extra.get(k) for k in ("hitl_required", "action_id", "risk_level", "human_summary")}}
seen["denied"], _, _ = streamed(c, "no")
streamed(c, "scale web to 2")
seen["done"], _, _ = streamed(c, "yes")
seen["nothing"], _, _ = streamed(c, "yes")

# By the header, with the plain model id.
seen["header"], _, _ = streamed(client("sdk-2", **{"X-Stream-Profile": "openai"}), "what is wrong?", model="cluster-assistant")

# The helper that puts a message together from its deltas.
with client("sdk-3").chat.completions.stream(model="cluster-assistant-openai", messages=messages("what is wrong?")) as stream:
    for event in stream:
        pass
    final = stream.get_final_completion()
seen["helper"] = {"role": final.choices[0].message.role, "text": final.choices[0].message.content}


async def asynchronous():
    a = openai.AsyncOpenAI(base_url=url + "/v1", api_key=key, max_retries=0, default_headers={"X-Session-ID": "sdk-4"})
    whole = ""
    async for chunk in await a.chat.completions.create(model="cluster-assistant-openai", messages=messages("what is wrong?"), stream=True):
        whole += chunk.choices[0].delta.content or ""
    return whole


seen["async"] = asyncio.run(asynchronous())

# Refusals are the SDK's own exceptions.
try:
    c.chat.completions.create(model="cluster-assistant-openai", messages=messages("a title, please"), stream=False)
except openai.UnprocessableEntityError as e:
    seen["unstreamed"] = {"code": e.code, "param": e.param, "type": e.type, "message": e.message}
try:
    client_without = openai.OpenAI(base_url=url + "/v1", api_key="ki-ro-nobody-has-this-one", max_retries=0)
    client_without.models.list()
except openai.AuthenticationError as e:
    seen["stranger"] = {"code": e.code, "type": e.type}

json.dump(seen, sys.stdout)
