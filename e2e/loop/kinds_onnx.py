"""Logs one model of each kind that people bring, as ONNX with the official client, registers it and makes it Staging.

For each it writes FOLDER/NAME.json: requests of the Open Inference Protocol and rows of columns, with what ONNX Runtime
answers in Python; 400 rows in all. With FOLDER/boosted, the models in there, which boosted_onnx.py writes, are logged too.
usage: TRACKING_URI=... kinds_onnx.py FOLDER
"""
import json
import os
import pathlib
import sys
import warnings

import ml_dtypes
import mlflow
import mlflow.onnx
import numpy as np
import onnx
import onnxruntime
import pandas as pd
from mlflow.models import infer_signature
from mlflow.tracking import MlflowClient
from onnx import TensorProto as T, helper, numpy_helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest, RandomForestClassifier, RandomForestRegressor
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

warnings.filterwarnings("ignore")
folder = pathlib.Path(sys.argv[1])
mlflow.set_tracking_uri(os.environ["TRACKING_URI"])
mlflow.set_experiment("kinds")
client = MlflowClient()
rng = np.random.default_rng(7)
N = 400
DATATYPES = {
    "float32": "FP32", "float64": "FP64", "float16": "FP16", "bfloat16": "BF16", "bool": "BOOL", "object": "BYTES",
    **{kind + bits: kind.upper() + bits for kind in ("int", "uint") for bits in ("8", "16", "32", "64")},
}


def values(a):
    """The array's values in row-major order, as JSON has them: NaN is null."""
    a = np.asarray(a)
    if a.dtype in (np.float16, ml_dtypes.bfloat16):
        a = a.astype(np.float32)
    return [None if isinstance(v, float) and v != v else v for v in a.reshape(-1).tolist()]


def run(session, feed):
    """The outputs by name. NumPy has no bfloat16: its tensors go in as their bits, and do not come out."""
    binding = session.io_binding()
    for name, v in feed.items():
        brain = v.dtype == ml_dtypes.bfloat16
        if v.dtype == object:
            return dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))
        v = np.ascontiguousarray(v.view(np.uint16) if brain else v)
        elem = T.BFLOAT16 if brain else helper.np_dtype_to_tensor_dtype(v.dtype)
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(v, elem))
    if not any(v.dtype == ml_dtypes.bfloat16 for v in feed.values()):
        return dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))
    for o in session.get_outputs():
        binding.bind_output(o.name)
    session.run_with_iobinding(binding)
    return {o.name: v.numpy() for o, v in zip(session.get_outputs(), binding.get_outputs()) if "bfloat16" not in v.data_type()}


def log(name, model, *requests, frame=None, signature=None, refused=None):
    """requests are inputs by name, frame rows of the last one as columns. refused is a part of the reason, if it is."""
    doc = {"name": name, "requests": [], "rows": [], "refused": refused}
    raw = model.SerializeToString()  # the client takes the weights out of the model that it saves
    with mlflow.start_run():
        info = mlflow.onnx.log_model(model, name="model", signature=signature, pip_requirements=[])  # finding them takes seconds
    version = mlflow.register_model(info.model_uri, name).version
    client.set_registered_model_alias(name, "Staging", version)
    if not refused:
        session = onnxruntime.InferenceSession(raw, providers=["CPUExecutionProvider"])
        for feed in requests:
            outputs = run(session, feed)
            tensors = {k: values(v) for k, v in outputs.items() if not isinstance(v, list)}  # no lists of maps
            doc["requests"].append({
                "inputs": [{"name": k, "datatype": DATATYPES[str(v.dtype)], "shape": v.shape, "data": values(v)} for k, v in feed.items()],
                "outputs": tensors,
            })
        if frame is not None:
            answer = next((k for k in outputs if "label" in k), next(iter(outputs)))
            maps = next((v for v in outputs.values() if isinstance(v, list)), None)
            for i, features in enumerate(json.loads(frame.to_json(orient="records", double_precision=15))):
                row = {"features": features, "prediction": values(outputs[answer])[i]}
                if maps:
                    row["probabilities"] = {str(k): float(p) for k, p in maps[i].items()}
                doc["rows"].append(row)
    (folder / f"{name}.json").write_text(json.dumps(doc))


def net(nodes, inputs, outputs, constants=None, opset=17, ir=8):
    """A graph of nodes (operator, inputs, output, attributes), as a converter of neural networks writes it."""
    made = [helper.make_node(op, i.split(), [o], **(a[0] if a else {})) for op, i, o, *a in nodes]
    infos = [[helper.make_tensor_value_info(*v) for v in side] for side in (inputs, outputs)]
    graph = helper.make_graph(made, "net", *infos, [numpy_helper.from_array(v, k) for k, v in (constants or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def normal(*shape):
    return rng.normal(size=shape).astype(np.float32)


wine, cancer = load_wine(as_frame=True), load_breast_cancer(as_frame=True)
frame = wine.data.astype(np.float32).iloc[rng.integers(0, len(wine.data), N)].reset_index(drop=True)
X, wide = wine.data.to_numpy(np.float32), cancer.data.to_numpy(np.float32)
grapes = np.array(["barolo", "grignolino", "barbera"])[wine.target]


def sklearn(name, model, target, x=X, rows=frame, signed=True, **options):
    model.fit(x, target)
    signature = infer_signature(rows, model.predict(x)) if signed else None
    log(name, to_onnx(model, x[:1], **options), {"X": rows.to_numpy(np.float32)}, frame=rows if signed else None, signature=signature)


# Classifiers and regressors of scikit-learn; by default with a ZipMap, of string and of integer labels.
sklearn("sk-strings", make_pipeline(StandardScaler(), LogisticRegression()), grapes)
sklearn("sk-no-zipmap", make_pipeline(StandardScaler(), LogisticRegression()), grapes, options={"zipmap": False})
sklearn("sk-integers", RandomForestClassifier(20, random_state=0), cancer.target, wide, cancer.data.astype(np.float32).iloc[:N])
sklearn("sk-svc", make_pipeline(StandardScaler(), SVC(probability=True)), grapes)
sklearn("sk-neighbors", KNeighborsClassifier(3), wine.target)
sklearn("sk-bayes", GaussianNB(), wine.target)
sklearn("sk-kmeans", KMeans(3, random_state=0, n_init=1), None)
sklearn("sk-anomalies", IsolationForest(n_estimators=5, random_state=0), None, target_opset={"": 17, "ai.onnx.ml": 3})
for opset in (9, 13, 21):
    sklearn(f"sk-opset-{opset}", make_pipeline(StandardScaler(), LogisticRegression()), grapes, target_opset={"": opset, "ai.onnx.ml": 1 if opset < 15 else 3})
# By tensors alone: without a signature, several targets (of which the graph declares one), a transformer.
sklearn("sk-unsigned", make_pipeline(StandardScaler(), LogisticRegression()), grapes, signed=False)
sklearn("sk-targets", RandomForestRegressor(10, random_state=0), X[:, :3] * 2, signed=False)
log("sk-transformer", to_onnx(PCA(2).fit(X), X[:1]), {"X": frame.to_numpy(np.float32)})
# A column for each class, instead of a ZipMap.
sklearn("sk-class-columns", make_pipeline(StandardScaler(), LogisticRegression()), grapes, signed=False, options={"zipmap": "columns"})

# Missing values, with a signature that names the columns, and with none.
holes = frame.where(rng.random(frame.shape) > 0.05)
holey = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(X, grapes)
log("missing-signed", to_onnx(holey, X[:1]), {"X": holes.to_numpy(np.float32)}, frame=holes, signature=infer_signature(holes, grapes))
log("missing-unsigned", to_onnx(holey, X[:1]), {"X": holes.to_numpy(np.float32)})

# A table of numbers, integers and categories, with an imputer and an encoder.
people = pd.DataFrame({
    "age": rng.normal(40, 10, N).astype(np.float32), "income": rng.normal(5e4, 1e4, N).astype(np.float32), "city": rng.choice(["rome", "oslo", "bonn"], N), "members": rng.integers(1, 6, N),
})
buys = (people.age + people.members * 3 + (people.city == "oslo") * 10 > 50).astype(int)
people.loc[::5, "income"] = np.nan
columns = [
    ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]), ("city", OneHotEncoder(handle_unknown="ignore"), ["city"]), ("rest", "passthrough", ["members"]),
]
types = [("age", FloatTensorType([None, 1])), ("income", FloatTensorType([None, 1])), ("city", StringTensorType([None, 1])), ("members", Int64TensorType([None, 1]))]
table = to_onnx(make_pipeline(ColumnTransformer(columns), LogisticRegression()).fit(people, buys), initial_types=types)
log("table", table, {k: people[[k]].to_numpy(object if k == "city" else people[k].dtype) for k in people}, frame=people, signature=infer_signature(people, buys))

# Images and sequences, of fixed and of open sizes.
convolution = [
    ("Conv", "c k", "f", {"pads": [1, 1, 1, 1]}), ("Relu", "f", "r"), ("GlobalAveragePool", "r", "g"), ("Flatten", "g", "l"), ("MatMul", "l w", "logits"),
]
filters = {"k": normal(4, 3, 3, 3), "w": normal(4, 10)}
logits = [("logits", T.FLOAT, ["N", 10])]
log("image-bytes", net([("Cast", "image", "x", {"to": T.FLOAT}), ("Transpose", "x", "c", {"perm": [0, 3, 1, 2]}), *convolution], [("image", T.UINT8, ["N", 8, 8, 3])], logits, filters),
    {"image": rng.integers(0, 256, (N, 8, 8, 3)).astype(np.uint8)})
log("image-floats", net(convolution, [("c", T.FLOAT, ["N", 3, 8, 8])], logits, filters), {"c": normal(N, 3, 8, 8)})
log("image-open", net(convolution, [("c", T.FLOAT, ["N", 3, "H", "W"])], logits, filters), *({"c": normal(rows, 3, h, w)} for rows, h, w in ((1, 9, 7), (4, 32, 16), (395, 8, 8))))
words, tail = normal(50, 8), np.array([8])
attention = [
    ("Gather", "words input_ids", "e"), ("Shape", "input_ids", "sizes"), ("Concat", "sizes tail", "to", {"axis": 0}), ("Reshape", "e to", "h"), ("Transpose", "h", "ht", {"perm": [0, 2, 1]}),
    ("MatMul", "h ht", "scores"), ("Cast", "attention_mask", "m", {"to": T.FLOAT}), ("Unsqueeze", "m one", "keys"), ("Mul", "scores keys", "kept"), ("Softmax", "kept", "p", {"axis": -1}),
    ("MatMul", "p h", "last_hidden_state"), ("ReduceMean", "last_hidden_state", "pooled", {"axes": [1], "keepdims": 0}),
]
text = net(attention, [(k, T.INT64, ["batch", "sequence"]) for k in ("input_ids", "attention_mask")], [("last_hidden_state", T.FLOAT, ["batch", "sequence", 8]), ("pooled", T.FLOAT, ["batch", 8])],
           {"words": words, "tail": tail, "one": np.array([1])})
log("text-encoder", text, *({"input_ids": rng.integers(0, 50, (n, t)), "attention_mask": np.ones((n, t), np.int64)} for n, t in ((1, 1), (4, 7), (8, 33), (387, 5))))
gates = {"W": normal(1, 12, 3), "R": normal(1, 12, 4), "zero": np.array([0])}
series = onnx.helper.make_model(onnx.helper.make_graph(
    [helper.make_node("Transpose", ["series"], ["t"], perm=[1, 0, 2]), helper.make_node("GRU", ["t", "W", "R"], ["", "y"], hidden_size=4), helper.make_node("Squeeze", ["y", "zero"], ["state"])], "net",
    [helper.make_tensor_value_info("series", T.FLOAT, ["N", "T", 3])], [helper.make_tensor_value_info("state", T.FLOAT, ["N", 4])],
    [numpy_helper.from_array(v, k) for k, v in gates.items()]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
log("series-open", series, *({"series": normal(n, t, 3)} for n, t in ((1, 1), (4, 10), (395, 20))))

# Element types, in and out.
for dtype, elem in (("uint8", T.UINT8), ("int8", T.INT8), ("int16", T.INT16), ("uint16", T.UINT16), ("int32", T.INT32), ("uint32", T.UINT32), ("int64", T.INT64), ("uint64", T.UINT64)):
    ends = np.iinfo(dtype)
    x = rng.integers(max(ends.min, -2**53), min(ends.max, 2**53), (N, 3)).astype(dtype)
    log("type-" + dtype, net([("Identity", "x", "y")], [("x", elem, ["N", 3])], [("y", elem, ["N", 3])]), {"x": x})
for dtype, elem in (("float16", T.FLOAT16), ("bfloat16", T.BFLOAT16), ("float64", T.DOUBLE)):
    model = net([("Cast", "x", "f", {"to": T.FLOAT}), ("MatMul", "f w", "y"), ("Cast", "y", "same", {"to": elem})], [("x", elem, ["N", 3])], [("y", T.FLOAT, ["N", 2]), ("same", elem, ["N", 2])], {"w": normal(3, 2)})
    log("type-" + dtype, model, {"x": normal(N, 3).astype(dtype)})
mixed = net(
    [("Cast", "i", "id", {"to": T.DOUBLE}), ("Cast", "b", "bd", {"to": T.DOUBLE}), ("Add", "id bd", "s"), ("Add", "s d", "sum"), ("Not", "b", "other"), ("Identity", "t", "echo")],
    [("i", T.INT64, ["N", 1]), ("b", T.BOOL, ["N", 1]), ("d", T.DOUBLE, ["N", 1]), ("t", T.STRING, ["N", 1])], [("sum", T.DOUBLE, ["N", 1]), ("other", T.BOOL, ["N", 1]), ("echo", T.STRING, ["N", 1])])
log("types-mixed", mixed, {"i": rng.integers(0, 9, (N, 1)), "b": rng.random((N, 1)) > 0.5, "d": rng.normal(size=(N, 1)), "t": rng.choice(["a", "é", ""], (N, 1)).astype(object)})

# Forms of the batch and of the file: one row at a time, rank one, constants among the inputs, weights in a file.
product, x = [("MatMul", "x w", "y")], normal(N, 3)
log("batch-of-one", net(product, [("x", T.FLOAT, [1, 3])], [("y", T.FLOAT, [1, 2])], {"w": normal(3, 2)}), *({"x": x[i:i + 1]} for i in range(N)))
log("rank-one", net([("Mul", "x x", "y")], [("x", T.FLOAT, ["N"])], [("y", T.FLOAT, ["N"])]), {"x": x[:, 0]})
log("constant-inputs", net(product, [("x", T.FLOAT, ["N", 3]), ("w", T.FLOAT, [3, 2])], [("y", T.FLOAT, ["N", 2])], {"w": normal(3, 2)}, opset=9, ir=3), {"x": x})
log("weights-in-a-file", net(product + [("MatMul", "y v", "z")], [("x", T.FLOAT, ["N", 3])], [("z", T.FLOAT, ["N", 1])], {"w": normal(3, 512), "v": normal(512, 1)}), {"x": x},
    frame=pd.DataFrame(x, columns=["a", "b", "c"]), signature=infer_signature(pd.DataFrame(x, columns=["a", "b", "c"]), x[:, 0]))
many = normal(N, 2000)
thousands = pd.DataFrame(many, columns=[f"column_{i}" for i in range(2000)])
log("many-columns", net([("MatMul", "x w", "y")], [("x", T.FLOAT, ["N", 2000])], [("y", T.FLOAT, ["N", 1])], {"w": normal(2000, 1)}), *({"x": many[i:i + 100]} for i in range(0, N, 100)), frame=thousands.iloc[300:320], signature=infer_signature(thousands, many[:, 0]))

# Refused, with the reason.
log("refused-batch-of-four", net(product, [("x", T.FLOAT, [4, 3])], [("y", T.FLOAT, [4, 2])], {"w": normal(3, 2)}), refused="has shape [4 3]; served are [N, …] and [1, …]")
log("refused-complex", net([("Identity", "x", "y")], [("x", T.COMPLEX64, ["N", 3])], [("y", T.COMPLEX64, ["N", 3])]), refused="has element type COMPLEX64, which is not served")
log("refused-random", net([("RandomNormalLike", "x", "y")], [("x", T.FLOAT, ["N", 3])], [("y", T.FLOAT, ["N", 3])]), refused="the operator RandomNormalLike is not served")
log("refused-functions", to_onnx(make_pipeline(KNNImputer(), LogisticRegression()).fit(X, grapes), X[:1]), refused="defines functions")

for file in sorted((folder / "boosted").glob("*.onnx")):
    given = np.load(file.with_suffix(".npz"))
    names = json.loads(file.with_suffix(".json").read_text())
    rows = pd.DataFrame(given["x"], columns=names)
    log(file.stem, onnx.load(file), {"X": given["x"]}, frame=rows, signature=infer_signature(rows, given["y"]))
    log(file.stem + "-unsigned", onnx.load(file), {"X": given["x"]})
