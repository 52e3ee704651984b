"""Uses a served model with tritonclient over gRPC as its own server's users do, and makes their mistakes."""

import json
import os
import sys

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

model = sys.argv[1]
auth = {"authorization": "Bearer " + os.environ["SERVING_TOKEN"]}
client = triton.InferenceServerClient(os.environ["SERVING_GRPC_ADDR"])
assert client.is_server_live() and client.is_server_ready()
assert client.is_model_ready(model, headers=auth) and not client.is_model_ready("NOSUCH", headers=auth)
assert client.get_server_metadata(headers=auth).name == "inference"

metadata = client.get_model_metadata(model, headers=auth, as_json=True)
columns = int(os.environ["COLUMNS_OF_MODEL"])
rows = np.random.default_rng(7).integers(0, 24, (64, columns)).astype(np.float32)


def tensor(values, name="input", datatype="FP32"):
    t = triton.InferInput(name, list(values.shape), datatype)
    t.set_data_from_numpy(values)
    return t


batch = client.infer(model, [tensor(rows)], headers=auth, request_id="batch")
response = batch.get_response()
answer = response.parameters["answer"].string_param
assert response.id == "batch" and response.parameters["alias"].string_param == "Production", response
values = batch.as_numpy(answer)
assert values.shape[0] == 64, values.shape
alone = [client.infer(model, [tensor(row.reshape(1, -1))], headers=auth, outputs=[triton.InferRequestedOutput(answer)]).as_numpy(answer).reshape(-1)[0] for row in rows[:10]]

refused = []
for wrong, options in (
    (tensor(rows[:, 1:]), {}),
    (tensor(rows, "inputs"), {}),
    (tensor(np.zeros((10000, columns), np.float32)), {}),
    (tensor(rows[:0]), {}),
    (tensor(np.zeros((1 << 22, 1), np.float32)), {}),
    (tensor(rows), {"model_version": "99999"}),
    (tensor(rows), {"headers": {"authorization": "Bearer wrong"}}),
    (tensor(rows), {"headers": {}}),
    (tensor(rows), {"timeout": 1}),
):
    try:
        client.infer(model, [wrong], **{"headers": auth, **options})
        refused.append("answered")
    except InferenceServerException as e:
        refused.append(f"{e.status()} {e.message()}")

plain = lambda v: v.decode() if isinstance(v, bytes) else float(v)
print(json.dumps({"alone": [plain(v) for v in alone], "batch": [plain(v) for v in values.reshape(-1)[:10]], "rows": rows[:10].tolist(), "refused": refused}))
