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
import onnx
import onnxruntime as ort
import pandas as pd
from mlflow.models import ModelSignature, infer_signature
from mlflow.types import ColSpec, Schema, TensorSpec
from mlflow.types.schema import Array, DataType
from skl2onnx import to_onnx
from skl2onnx.common.data_types import BooleanTensorType, DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
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
    raw = onx.SerializeToString()  # mlflow takes the weights out of the model that it saves
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "model"
        mlflow.onnx.save_model(onx, str(path), signature=signature)
        target.mkdir()
        for file in path.iterdir():  # and not what describes the environment
            if file.suffix not in (".yaml", ".txt"):
                shutil.copy(file, target)
    session = ort.InferenceSession(raw, providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    got = dict(zip(outputs, session.run(None, rows)))
    cases = []
    label = next((n for n in outputs if "label" in n), next((n for n in outputs if got[n][0].__class__ is str), None))
    value = got[label if label else outputs[0]]
    probability = next((n for n in outputs if "probabilit" in n or isinstance(got[n], list)), None)
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

# Classifiers whose probabilities have other names before the ZipMap, of two classes and of three.
def classifier(name, model, target):
    onx = to_onnx(model.fit(X, target), initial_types=[("X", FloatTensorType([None, 3]))], target_opset=OPSET)
    save(name, onx, infer_signature(frame, target), {"X": X[:4].astype(np.float32)}, rows_of(frame))
    return onx


halves = (y > 3).astype(int)
classifier("boosted", GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0), classes)
classifier("boosted_halves", GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0), halves)
classifier("perceptron", MLPClassifier((4,), max_iter=50, random_state=0), classes)
onx = classifier("perceptron_halves", MLPClassifier((4,), max_iter=50, random_state=0), halves)

# The label second, and no output named for what it is.
onx = to_onnx(logistic, initial_types=[("X", FloatTensorType([None, 3]))], target_opset=OPSET)
names_of = {"label": "first", "output_label": "answer", "probabilities": "inner", "output_probability": "shares"}
for part in [n for node in onx.graph.node for n in (node.input, node.output)]:
    part[:] = [names_of.get(n, n) for n in part]
for o in onx.graph.output:
    o.name = names_of[o.name]
onx.graph.output.append(onx.graph.output.pop(0))
save("renamed", onx, infer_signature(frame, classes), {"X": X[:4].astype(np.float32)}, rows_of(frame))

# Weights as PyTorch exports them, raw, which mlflow.onnx keeps in a file of their own by default. Its name is random.
first, second = rng.normal(size=(3, 128)).astype(np.float32), rng.normal(size=(128, 1)).astype(np.float32)
graph = onnx.helper.make_graph(
    [onnx.helper.make_node("MatMul", ["X", "first"], ["wide"]), onnx.helper.make_node("MatMul", ["wide", "second"], ["prediction"])], "net",
    [onnx.helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, ["N", 3])], [onnx.helper.make_tensor_value_info("prediction", onnx.TensorProto.FLOAT, ["N", 1])],
    [onnx.numpy_helper.from_array(first, "first"), onnx.numpy_helper.from_array(second, "second")])
onx = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
save("external", onx, infer_signature(frame, y), {"X": X[:4].astype(np.float32)}, rows_of(frame))

# Missing values, of which the signature says where they may be: it is inferred from rows that have some.
holes = frame.copy()
holes.loc[::3, "height"] = np.nan
imputed = Pipeline([("impute", SimpleImputer()), ("model", LinearRegression())]).fit(holes, y)
onx = to_onnx(imputed, initial_types=[("X", FloatTensorType([None, 3]))], target_opset=OPSET)
save("missing", onx, infer_signature(holes, y), {"X": holes.to_numpy()[:4].astype(np.float32)}, rows_of(holes))

# Half precision, within and without.
weights = rng.normal(size=(3, 1)).astype(np.float16)
halves = pd.DataFrame(X.astype(np.float16).astype(np.float64), columns=names)
graph = onnx.helper.make_graph(
    [onnx.helper.make_node("MatMul", ["X", "weights"], ["prediction"])], "net",
    [onnx.helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT16, ["N", 3])], [onnx.helper.make_tensor_value_info("prediction", onnx.TensorProto.FLOAT16, ["N", 1])],
    [onnx.numpy_helper.from_array(weights, "weights")])
onx = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
save("half", onx, infer_signature(halves, y), {"X": halves.to_numpy()[:4].astype(np.float16)}, rows_of(halves))
