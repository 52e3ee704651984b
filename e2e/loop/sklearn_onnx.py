"""Trains a scikit-learn forest, logs it as ONNX with the official client, registers it and makes it Production.

Prints one JSON document: the version, and rows with the predictions that ONNX Runtime gives in Python.
usage: TRACKING_URI=... sklearn_onnx.py NAME
"""
import json
import os
import sys
import time

import mlflow
import mlflow.onnx
import numpy as np
import onnxruntime
import pandas as pd
from mlflow.models import infer_signature
from mlflow.tracking import MlflowClient
from skl2onnx import to_onnx
from sklearn.ensemble import RandomForestRegressor

name = sys.argv[1]
mlflow.set_tracking_uri(os.environ["TRACKING_URI"])
mlflow.set_experiment("official-client")

rng = np.random.default_rng(7)
columns = ["nodes", "cpus", "walltime", "hour"]
x = rng.uniform(0, 100, size=(400, 4)).astype(np.float32)
y = 3 * x[:, 0] - x[:, 1] * x[:, 3] / 50 + rng.normal(0, 1, 400)
forest = RandomForestRegressor(n_estimators=30, max_depth=8, random_state=1).fit(x, y)
onnx_model = to_onnx(forest, x[:1])


frame = pd.DataFrame(x, columns=columns)
with mlflow.start_run() as run:
    mlflow.log_params({"n_estimators": 30, "max_depth": 8})
    mlflow.log_metric("train_r2", float(forest.score(x, y)))
    info = mlflow.onnx.log_model(onnx_model, name="model", signature=infer_signature(frame, forest.predict(x)))
version = mlflow.register_model(info.model_uri, name).version
client = MlflowClient()
client.set_registered_model_alias(name, "Production", version)
since = time.time()

# Back through the registry, as a consumer would load it.
loaded = mlflow.onnx.load_model(f"models:/{name}/{version}")
session = onnxruntime.InferenceSession(loaded.SerializeToString())
rows = x[:20]
predicted = session.run(None, {session.get_inputs()[0].name: rows})[0].reshape(-1)
print(json.dumps({
    "version": str(version),
    "since": since,
    "rows": [dict(zip(columns, map(float, r))) for r in rows],
    "predictions": [float(v) for v in predicted],
}))
