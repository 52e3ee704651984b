"""Writes the artifacts beside this file as mlflow.onnx saves them, with what ONNX Runtime's own Python
package predicts for a few rows in expected.json.

python3 -m venv v && v/bin/pip install scikit-learn==1.9.1 skl2onnx==1.20.0 mlflow-skinny==3.17.2 pandas onnxruntime
v/bin/python make.py
"""
import json
import pathlib
import shutil
import tempfile

import mlflow
import mlflow.onnx
import numpy as np
import onnxruntime as ort
import pandas as pd
from mlflow.models import ModelSignature, infer_signature
from mlflow.types import ColSpec, Schema, TensorSpec
from mlflow.types.schema import Array, DataType
from skl2onnx import to_onnx
from skl2onnx.common.data_types import BooleanTensorType, DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingRegressor, IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

HERE = pathlib.Path(__file__).parent
rng = np.random.default_rng(7)
OPSET = {"": 17, "ai.onnx.ml": 3}

X = rng.normal(size=(200, 3))
y = X @ [1.5, -2.0, 0.25] + 3
names = ["width", "height", "age"]
frame = pd.DataFrame(X, columns=names)
classes = np.where(y > 4, "high", np.where(y > 2, "mid", "low"))


def save(name, onx, signature, rows, features):
    target = HERE / name
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "model"
        mlflow.onnx.save_model(onx, str(path), signature=signature)
        target.mkdir()
        shutil.copy(path / "MLmodel", target)
        shutil.copy(path / "model.onnx", target)
    session = ort.InferenceSession(onx.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    got = dict(zip(outputs, session.run(None, rows)))
    cases = []
    label = next((n for n in outputs if "label" in n), None)
    value = got[label if label else outputs[0]]
    probability = next((n for n in outputs if "probabilit" in n), None)
    for i, f in enumerate(features):
        v = np.asarray(value)[i]
        case = {"features": f, "prediction": v.item() if hasattr(v, "item") else v}
        if probability:
            p = got[probability][i]
            case["probabilities"] = {str(k): float(x) for k, x in p.items()} if isinstance(p, dict) else [float(x) for x in p]
        cases.append(case)
    (target / "expected.json").write_text(json.dumps(cases, indent=1) + "\n")


def rows_of(frame):
    return json.loads(frame.head(4).to_json(orient="records"))


# One float tensor [N,3], table signature of doubles.
linear = LinearRegression().fit(X, y)
onx = to_onnx(linear, initial_types=[("X", FloatTensorType([None, 3]))], target_opset=OPSET)
save("one_tensor", onx, infer_signature(frame, y), {"X": X[:4].astype(np.float32)}, rows_of(frame))

# The same with a double tensor, and trees.
gbt = GradientBoostingRegressor(n_estimators=10, max_depth=3, random_state=0).fit(X, y)
onx = to_onnx(gbt, initial_types=[("X", FloatTensorType([None, 3]))], target_opset=OPSET)
save("trees", onx, infer_signature(frame, y), {"X": X[:4].astype(np.float32)}, rows_of(frame))
onx = to_onnx(linear, initial_types=[("X", DoubleTensorType([None, 3]))], target_opset=OPSET)
save("double_tensor", onx, infer_signature(frame, y), {"X": X[:4]}, rows_of(frame))

# A tensor signature: the one tensor is a list.
onx = to_onnx(linear, initial_types=[("X", FloatTensorType([None, 3]))], target_opset=OPSET)
save("tensor_spec", onx, ModelSignature(inputs=Schema([TensorSpec(np.dtype("float32"), (-1, 3))])), {"X": X[:4].astype(np.float32)},
     [{"X": [float(v) for v in row]} for row in X[:4]])

# A table with an array column, whose length only the graph knows.
onx = to_onnx(linear, initial_types=[("X", FloatTensorType([None, 3]))], target_opset=OPSET)
save("array_column", onx, ModelSignature(inputs=Schema([ColSpec(DataType.double, "width"), ColSpec(Array(DataType.double), "rest")])),
     {"X": X[:4].astype(np.float32)}, [{"width": float(r[0]), "rest": [float(r[1]), float(r[2])]} for r in X[:4]])

# Classifiers: with the default ZipMap, and without.
logistic = LogisticRegression().fit(X, classes)
onx = to_onnx(logistic, initial_types=[("X", FloatTensorType([None, 3]))], target_opset=OPSET)
save("zipmap", onx, infer_signature(frame, classes), {"X": X[:4].astype(np.float32)}, rows_of(frame))
onx = to_onnx(logistic, initial_types=[("X", FloatTensorType([None, 3]))], target_opset=OPSET, options={"zipmap": False})
save("no_zipmap", onx, infer_signature(frame, classes), {"X": X[:4].astype(np.float32)}, rows_of(frame))
numbered = LogisticRegression().fit(X, (y > 3).astype(int) * 10)
onx = to_onnx(numbered, initial_types=[("X", FloatTensorType([None, 3]))], target_opset=OPSET)
save("int_labels", onx, infer_signature(frame, (y > 3).astype(int)), {"X": X[:4].astype(np.float32)}, rows_of(frame))

# One input a column, of several types.
mixed = pd.DataFrame({"procs": rng.integers(1, 64, 200), "queue": rng.choice(["short", "long"], 200), "urgent": rng.random(200) > 0.5, "hour": X[:, 0]})
target = mixed.procs * 2 + (mixed["queue"] == "long") * 30 + mixed.hour
encode = ColumnTransformer([("q", OneHotEncoder(handle_unknown="ignore"), ["queue"]), ("n", "passthrough", ["procs", "hour"])])
pipeline = Pipeline([("encode", encode), ("model", LinearRegression())]).fit(mixed[["procs", "queue", "hour"]], target)
onx = to_onnx(pipeline, initial_types=[("procs", Int64TensorType([None, 1])), ("queue", StringTensorType([None, 1])), ("hour", DoubleTensorType([None, 1]))],
              target_opset=OPSET)
table = mixed[["procs", "queue", "hour"]]
save("columns", onx, infer_signature(table, target),
     {"procs": table.procs.to_numpy()[:4].reshape(-1, 1), "queue": table["queue"].to_numpy().astype(object)[:4].reshape(-1, 1), "hour": table.hour.to_numpy()[:4].reshape(-1, 1)},
     rows_of(table))

# An isolation forest: label −1 or 1 and a score.
forest = IsolationForest(n_estimators=5, random_state=0).fit(X)
onx = to_onnx(forest, initial_types=[("X", FloatTensorType([None, 3]))], target_opset=OPSET)
save("isolation", onx, infer_signature(frame, np.ones(3, dtype=np.int64)), {"X": X[:4].astype(np.float32)}, rows_of(frame))
