"""Uses a served model with tritonclient as its own server's users do: binary tensors by default, JSON, and mistakes."""

import json
import os
import sys
import urllib.request

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

url, token, model = os.environ["SERVING_URL"], os.environ["SERVING_TOKEN"], sys.argv[1]


def auth():
    return {"Authorization": "Bearer " + token}  # a new one each time: infer adds its own headers to what it is given


client = triton.InferenceServerClient(url.removeprefix("http://"))
assert client.is_server_live() and client.is_server_ready()
assert client.is_model_ready(model, headers=auth())
assert "binary_tensor_data" in client.get_server_metadata(headers=auth())["extensions"]
assert any(m["name"] == model for m in client.get_model_repository_index(headers=auth()))


def call(path, body=None):
    request = urllib.request.Request(url + path, None if body is None else json.dumps(body).encode(), {**auth(), "Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))


columns = next(m for m in call("/models") if m["model_name"] == model)["inputs"]
assert all(c["kind"] in ("number", "integer") for c in columns), columns
rows = np.random.default_rng(7).integers(0, 24, (64, len(columns))).astype(np.float32)


def tensor(values, name="input", binary=True):
    t = triton.InferInput(name, list(values.shape), "FP32")
    t.set_data_from_numpy(values, binary_data=binary)
    return t


outputs = client.get_model_metadata(model, headers=auth())["outputs"]
by_default = client.infer(model, [tensor(rows)], headers=auth())
as_json = client.infer(
    model, [tensor(rows, binary=False)], headers=auth(), outputs=[triton.InferRequestedOutput(o["name"], binary_data=False) for o in outputs]
)
for o in outputs:
    a, b = by_default.as_numpy(o["name"]), as_json.as_numpy(o["name"])
    assert a.shape[0] == 64 and (a == b).all(), (o, a, b)

for algorithm in ("gzip", "deflate"):
    packed = client.infer(model, [tensor(rows)], headers=auth(), request_compression_algorithm=algorithm, response_compression_algorithm=algorithm)
    for o in outputs:
        assert (packed.as_numpy(o["name"]) == by_default.as_numpy(o["name"])).all(), (algorithm, o)

refused = []
for wrong in (tensor(rows[:, 1:]), tensor(rows, "inputs"), tensor(np.zeros((10000, len(columns)), np.float32)), tensor(rows[:0])):
    try:
        client.infer(model, [wrong], headers=auth())
        refused.append("answered")
    except InferenceServerException as e:
        refused.append(f"{e.status()} {e.message()}")

answer = next(o["name"] for o in outputs if "probabilit" not in o["name"])
alone = [call("/predict/" + model, {"features": {c["name"]: float(v) if c["kind"] == "number" else int(v) for c, v in zip(columns, row)}})["prediction"] for row in rows[:10]]
texts = [v.decode() if isinstance(v, bytes) else float(v) for v in by_default.as_numpy(answer).reshape(-1)[:10].tolist()]
print(json.dumps({"predict": alone, "v2": texts, "refused": refused}))
