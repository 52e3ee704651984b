"""Uses a tracking server as a data scientist would, with the official client only.

usage: client.py <tracking uri>   Exits 0 and prints "ok" if everything holds.
"""

import math
import os
import sys
import tempfile
import uuid
import warnings

os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
warnings.filterwarnings("ignore")

import mlflow  # noqa: E402
import mlflow.onnx  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from mlflow import MlflowClient  # noqa: E402
from mlflow.entities import Metric, Param, RunTag, ViewType  # noqa: E402
from mlflow.exceptions import MlflowException  # noqa: E402
from mlflow.utils.credentials import get_default_host_creds  # noqa: E402
from mlflow.utils.rest_utils import http_request  # noqa: E402
from skl2onnx import to_onnx  # noqa: E402
from sklearn.ensemble import RandomForestRegressor  # noqa: E402

mlflow.set_tracking_uri(sys.argv[1])
client = MlflowClient()
unique = uuid.uuid4().hex[:8]


def refuses(code, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except MlflowException as e:
        assert e.error_code == code, f"{call.__name__}: {e.error_code}, want {code}: {e}"
        return
    raise AssertionError(f"{call.__name__}{args} was not refused with {code}")


def experiments():
    name = f"jpcp_runs_{unique}"
    exp = mlflow.set_experiment(name)
    assert mlflow.set_experiment(name).experiment_id == exp.experiment_id
    refuses("RESOURCE_ALREADY_EXISTS", client.create_experiment, name)
    client.set_experiment_tag(exp.experiment_id, "owner", "team-a")
    found = client.search_experiments(filter_string=f"name = '{name}' AND tags.owner = 'team-a'")
    assert [e.name for e in found] == [name]
    other = client.create_experiment(name + "_b", tags={"k": "v"})
    client.rename_experiment(other, name + "_c")
    assert client.get_experiment(other).name == name + "_c"
    client.delete_experiment(other)
    assert client.get_experiment(other).lifecycle_stage == "deleted"
    assert [e.name for e in client.search_experiments(view_type=ViewType.DELETED_ONLY, filter_string=f"name LIKE '{name}%'")] == [name + "_c"]
    refuses("INVALID_PARAMETER_VALUE", client.create_run, other)
    client.restore_experiment(other)
    assert client.get_experiment_by_name("nothing-" + unique) is None
    return exp


def runs(exp):
    with mlflow.start_run(run_name="Runtime_NASA", tags={"tenant": "default"}) as run:
        mlflow.log_params({"seed": 7, "estimator": "forest"})
        mlflow.log_param("long", "x" * 5000)
        mlflow.log_metrics({"rmse": 0.5, "val_rmse": 0.6}, step=1)
        for step in range(1, 4):
            mlflow.log_metric("loss", 1 / step, step=step)
        mlflow.log_metric("nan", math.nan)
        mlflow.log_metric("inf", math.inf)
        mlflow.set_tags({"dataset_version": "abc", "data_origin": "archive"})
        mlflow.log_dict({"rows": 3}, "report/summary.json")
        mlflow.log_text("größe", "report/été.txt")
        refuses("INVALID_PARAMETER_VALUE", client.log_param, run.info.run_id, "seed", 8)
        client.log_batch(
            run.info.run_id,
            metrics=[Metric(f"m{i}", float(i), 1700000000000 + i, i) for i in range(500)],
            params=[Param(f"p{i}", str(i)) for i in range(50)],
            tags=[RunTag(f"t{i}", str(i)) for i in range(50)],
        )
        mlflow.log_input(mlflow.data.from_pandas(pd.DataFrame({"a": [1.0, 2.0]}), name="jobs"), context="training")
    got = client.get_run(run.info.run_id)
    assert got.info.status == "FINISHED" and got.info.run_name == "Runtime_NASA"
    assert got.data.params["seed"] == "7" and got.data.params["p49"] == "49" and len(got.data.params["long"]) == 5000
    assert got.data.metrics["rmse"] == 0.5 and got.data.metrics["loss"] == 1 / 3 and got.data.metrics["m499"] == 499
    assert math.isnan(got.data.metrics["nan"]) and got.data.metrics["inf"] > 1e308
    assert got.inputs.dataset_inputs[0].dataset.name == "jobs"
    assert [m.value for m in client.get_metric_history(run.info.run_id, "loss")] == [1, 1 / 2, 1 / 3]
    client.delete_tag(run.info.run_id, "t0")
    assert "t0" not in client.get_run(run.info.run_id).data.tags

    second = client.create_run(exp.experiment_id, run_name="second", tags={"tenant": "it's"})
    client.log_metric(second.info.run_id, "rmse", 0.1)
    client.set_terminated(second.info.run_id, "KILLED")
    client.update_run(second.info.run_id, name="renamed")

    def search(filter_string="", **kwargs):
        return [r.info.run_name for r in client.search_runs([exp.experiment_id], filter_string, **kwargs)]

    assert search("metrics.rmse < 0.3") == ["renamed"]
    assert search("params.seed = '7' and tags.tenant = 'default' and attributes.status = 'FINISHED'") == ["Runtime_NASA"]
    assert search('tags.tenant = "it\'s"') == ["renamed"]
    assert search("run_name ILIKE 'RUNTIME%'") == ["Runtime_NASA"]
    assert search(f"run_id IN ('{run.info.run_id}')") == ["Runtime_NASA"]
    assert search(order_by=["metrics.rmse ASC"]) == ["renamed", "Runtime_NASA"]
    first = client.search_runs([exp.experiment_id], order_by=["metrics.rmse DESC"], max_results=1)
    rest = client.search_runs([exp.experiment_id], order_by=["metrics.rmse DESC"], max_results=1, page_token=first.token)
    assert [first[0].info.run_name, rest[0].info.run_name] == ["Runtime_NASA", "renamed"]
    assert len(mlflow.search_runs([exp.experiment_id])) == 2
    refuses("INVALID_PARAMETER_VALUE", search, "metrics.rmse = 1 OR metrics.rmse = 2")
    client.delete_run(second.info.run_id)
    assert search() == ["Runtime_NASA"] and search(run_view_type=ViewType.DELETED_ONLY) == ["renamed"]
    refuses("INVALID_PARAMETER_VALUE", client.log_metric, second.info.run_id, "rmse", 1)
    client.restore_run(second.info.run_id)
    refuses("RESOURCE_DOES_NOT_EXIST", client.get_run, "0" * 32)
    return run.info.run_id


def artifacts(run_id):
    with tempfile.TemporaryDirectory() as tmp:
        os.makedirs(os.path.join(tmp, "deep", "er"))
        with open(os.path.join(tmp, "deep", "er", "big.bin"), "wb") as f:
            f.write(os.urandom(3 << 20))
        with open(os.path.join(tmp, "one.txt"), "w") as f:
            f.write("one")
        client.log_artifacts(run_id, tmp, "folder")
        client.log_artifact(run_id, os.path.join(tmp, "one.txt"))
        assert sorted(f.path for f in client.list_artifacts(run_id)) == ["folder", "one.txt", "report"]
        assert [(f.path, f.is_dir) for f in client.list_artifacts(run_id, "folder")] == [("folder/deep", True), ("folder/one.txt", False)]
        got = mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path="folder", dst_path=os.path.join(tmp, "out"))
        with open(os.path.join(got, "deep", "er", "big.bin"), "rb") as a, open(os.path.join(tmp, "deep", "er", "big.bin"), "rb") as b:
            assert a.read() == b.read()
    assert mlflow.artifacts.load_text(f"runs:/{run_id}/report/été.txt") == "größe"
    assert mlflow.artifacts.load_dict(f"runs:/{run_id}/report/summary.json") == {"rows": 3}


def registry():
    name = f"runtime_{unique}"
    rng = np.random.default_rng(3)
    x = rng.random((200, 4)).astype(np.float32)
    y = (x @ np.array([1, 2, 3, 4], dtype=np.float32)).astype(np.float32)
    model = RandomForestRegressor(n_estimators=5, random_state=0).fit(x, y)
    versions = []
    for _ in range(2):
        with mlflow.start_run() as run:
            info = mlflow.onnx.log_model(
                to_onnx(model, x[:1], target_opset={"": 17, "ai.onnx.ml": 3}),
                name="model",
                signature=mlflow.models.infer_signature(x, y),
                input_example=x[:2],
                onnx_execution_providers=["CPUExecutionProvider"],
            )
            mlflow.log_metric("rmse", 0.2, model_id=info.model_id)
        versions.append(mlflow.register_model(info.model_uri, name, tags={"framework": "onnx"}))
    assert [v.version for v in versions] == ["1", "2"]
    assert versions[0].source.startswith("models:/m-"), versions[0].source
    logged = mlflow.get_logged_model(info.model_id)
    assert str(logged.status) == "LoggedModelStatus.READY" or logged.status == "READY", logged.status
    assert [m.value for m in logged.metrics] == [0.2]
    assert client.get_run(run.info.run_id).outputs.model_outputs[0].model_id == info.model_id
    found = mlflow.search_logged_models([run.info.experiment_id], filter_string="metrics.rmse > 0.1 AND name = 'model'", output_format="list")
    assert {m.model_id for m in found} >= {info.model_id}

    # Not Production: a platform puts that alias back until the move is approved, in whose name it then is.
    client.set_registered_model_alias(name, "Champion", 1)
    client.set_registered_model_alias(name, "Champion", 2)
    client.set_registered_model_alias(name, "Staging", "1")
    assert client.get_model_version_by_alias(name, "Champion").version == "2"
    assert client.get_registered_model(name).aliases == {"Champion": "2", "Staging": "1"}
    assert client.get_model_version(name, "1").aliases == ["Staging"]
    client.delete_registered_model_alias(name, "Staging")
    refuses("INVALID_PARAMETER_VALUE", client.get_model_version_by_alias, name, "Staging")
    refuses("RESOURCE_DOES_NOT_EXIST", client.set_registered_model_alias, name, "Canary", "9")
    refuses("INVALID_PARAMETER_VALUE", client.set_registered_model_alias, name, "v2", "2")

    for uri in (f"models:/{name}@Champion", f"models:/{name}/1", info.model_uri, f"runs:/{run.info.run_id}/model"):
        got = np.asarray(mlflow.pyfunc.load_model(uri).predict(x[:5])["variable"]).ravel()
        assert np.allclose(got, model.predict(x[:5]), atol=1e-4), uri
    assert mlflow.onnx.load_model(f"models:/{name}@Champion").graph is not None
    with tempfile.TemporaryDirectory() as tmp:
        got = mlflow.artifacts.download_artifacts(f"models:/{name}@Champion", dst_path=tmp)
        assert {"MLmodel", "model.onnx"} <= set(os.listdir(got))

    client.update_model_version(name, "1", "first")
    client.update_registered_model(name, "about run times")
    client.set_model_version_tag(name, "1", "artifact_digest", "ab" * 32)
    client.set_registered_model_tag(name, "project", "hpc")
    v = client.get_model_version(name, "1")
    assert v.description == "first" and v.tags == {"framework": "onnx", "artifact_digest": "ab" * 32} and v.status == "READY"
    client.delete_model_version_tag(name, "1", "artifact_digest")
    assert [m.version for m in client.search_model_versions(f"name = '{name}'", order_by=["version_number DESC"])] == ["2", "1"]
    assert [m.version for m in client.search_model_versions(f"name = '{name}' and tags.framework = 'onnx'", max_results=1)] == ["1"]  # changed last
    assert [m.name for m in client.search_registered_models(f"name ILIKE '{name.upper()}' AND tags.project = 'hpc'")] == [name]
    refuses("RESOURCE_ALREADY_EXISTS", client.create_registered_model, name)
    refuses("RESOURCE_DOES_NOT_EXIST", client.get_registered_model, "nothing-" + unique)
    client.transition_model_version_stage(name, "1", "Production")
    client.transition_model_version_stage(name, "2", "Production", archive_existing_versions=True)
    assert {v.version: v.current_stage for v in client.get_latest_versions(name)} == {"1": "Archived", "2": "Production"}

    client.rename_registered_model(name, name + "_r")
    assert client.get_registered_model(name + "_r").aliases == {"Champion": "2"}
    client.delete_model_version(name + "_r", "2")
    assert client.get_registered_model(name + "_r").aliases == {}
    assert mlflow.register_model(info.model_uri, name + "_r").version == "3"
    client.delete_registered_model(name + "_r")
    refuses("RESOURCE_DOES_NOT_EXIST", client.get_model_version, name + "_r", "1")
    client.delete_logged_model(info.model_id)
    refuses("RESOURCE_DOES_NOT_EXIST", client.get_logged_model, info.model_id)


def copies():
    """A version made from another one has its files, run and logged model."""
    first, second = f"first_{unique}", f"second_{unique}"
    with mlflow.start_run() as run:
        mlflow.log_text("weights", "model/weights.txt")
    client.create_registered_model(first)
    client.create_model_version(first, f"runs:/{run.info.run_id}/model", run_id=run.info.run_id)
    client.set_registered_model_alias(first, "Champion", 1)
    copied = client.copy_model_version(f"models:/{first}/1", second)
    assert (copied.name, copied.version, copied.source, copied.run_id) == (second, "1", f"models:/{first}/1", run.info.run_id), copied
    assert client.copy_model_version(f"models:/{first}@Champion", second).source == f"models:/{first}/1"
    assert client.create_model_version(second, f"models:/{first}@Champion").source == f"models:/{first}/1"
    assert mlflow.artifacts.load_text(f"models:/{second}/1/weights.txt") == "weights"
    refuses("RESOURCE_DOES_NOT_EXIST", client.create_model_version, second, f"models:/{first}/7")
    refuses("INVALID_PARAMETER_VALUE", client.create_model_version, second, f"runs:/{run.info.run_id}/model")


def prompts():
    name = f"prompt_{unique}"
    made = mlflow.genai.register_prompt(name, "Say {{what}}.", commit_message="first", tags={"team": "hpc"})
    assert (made.name, made.version) == (name, 1)
    assert mlflow.genai.register_prompt(name, [{"role": "user", "content": "Say {{what}}!"}]).version == 2
    mlflow.genai.set_prompt_alias(name, "live", 1)
    assert mlflow.genai.load_prompt(f"prompts:/{name}@live").format(what="hello") == "Say hello."
    assert mlflow.genai.load_prompt(name, version=2).template[0]["content"] == "Say {{what}}!"
    assert [p.name for p in mlflow.genai.search_prompts(f"name = '{name}'")] == [name]
    assert client.search_registered_models(f"name = '{name}'") == []
    client.set_prompt_version_tag(name, "1", "seen", "yes")
    assert client.get_prompt_version(name, "1").tags["seen"] == "yes"
    refuses("RESOURCE_ALREADY_EXISTS", client.create_registered_model, name)
    mlflow.genai.delete_prompt_alias(name, "live")


def names_and_datasets(experiment):
    with mlflow.start_run() as run:
        mlflow.log_metric("精度", 0.5)
        mlflow.log_param("größe", 1)
        mlflow.set_tag("шаг", "один")
    got = client.get_run(run.info.run_id).data
    assert got.metrics["精度"] == 0.5 and got.params["größe"] == "1" and got.tags["шаг"] == "один"
    model = client.create_logged_model(experiment.experiment_id, name="measured")
    client.log_metric(run.info.run_id, "rmse", 0.1, model_id=model.model_id, dataset_name="jobs", dataset_digest="d1")

    def measured(dataset):
        return [m.model_id for m in client.search_logged_models([experiment.experiment_id], datasets=[{"dataset_name": dataset, "dataset_digest": "d1"}])]

    assert measured("no-such") == [] and measured("jobs") == [model.model_id]


def sentences(run_id, experiment):
    """Refusals of the REST interface, in its own words; the client would refuse some of these by itself."""

    def message(path, **body):
        response = http_request(get_default_host_creds(mlflow.get_tracking_uri()), f"/api/2.0/mlflow/{path}", "POST", json=body)
        assert response.status_code == 400, (path, body, response.text)
        return response.json()["message"]

    metric = {"run_id": run_id, "key": "k", "value": 1, "timestamp": 1, "step": 1}
    for path, body, want in [
        ("runs/log-metric", metric | {"key": 7}, "Invalid value 7 for parameter 'key' supplied:  Hint: Value was of type 'int'."),
        ("runs/log-metric", metric | {"value": "high"}, "Invalid value \"high\" for parameter 'value' supplied:  Hint: Value was of type 'str'."),
        ("runs/log-metric", metric | {"step": "first"}, "Invalid value \"first\" for parameter 'step' supplied:  Hint: Value was of type 'str'."),
        ("runs/log-metric", metric | {"key": "a$"}, "Invalid value \"a$\" for parameter 'name' supplied: Names may only contain"),
        ("runs/log-metric", metric | {"timestamp": -1}, "Invalid value -1 for parameter 'timestamp' supplied: metric 'k'"),
        ("runs/log-metric", {"run_id": run_id, "key": "k"}, "Missing value for required parameter 'value'."),
        ("runs/log-parameter", {"run_id": run_id, "key": "a$", "value": "1"}, "Invalid value \"a$\" for parameter 'key' supplied: Names may only contain"),
        ("runs/set-tag", {"run_id": run_id, "key": 7, "value": "1"}, "Invalid value 7 for parameter 'key' supplied:  Hint: Value was of type 'int'."),
        ("runs/log-batch", {"run_id": run_id, "metrics": [{"key": "k", "timestamp": 1}]}, "Missing value for required parameter 'metrics[0].value'."),
        ("runs/log-batch", {"run_id": run_id, "params": [{"key": "a$", "value": "1"}]}, "Invalid value \"a$\" for parameter 'params[0].key' supplied: "),
        ("runs/create", {"experiment_id": 5}, "Invalid value 5 for parameter 'experiment_id' supplied:  Hint: Value was of type 'int'."),
        ("experiments/create", {"name": 5}, "Invalid value 5 for parameter 'name' supplied:  Hint: Value was of type 'int'."),
        ("model-versions/set-tag", {"name": "m", "version": 1, "key": "k"}, "Invalid value 1 for parameter 'version' supplied:  Hint: Value was of type 'int'."),
    ]:
        got = message(path, **body)
        assert got.startswith(want), (path, body, got)


exp = experiments()
run_id = runs(exp)
artifacts(run_id)
registry()
copies()
prompts()
names_and_datasets(exp)
sentences(run_id, exp)
print("ok")
