"""Uses an orchestrator as a data scientist would, with the official client, command line and process worker only.

usage: client.py <name of a work pool>   PREFECT_API_URL names the server. Exits 0 and prints "ok" if everything holds.
"""

import os
import subprocess
import sys
import tempfile
import time
import uuid

from prefect import flow, get_client, get_run_logger, task
from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId
from prefect.variables import Variable

here = os.path.dirname(os.path.abspath(__file__))
unique = uuid.uuid4().hex[:8]
client = get_client(sync_client=True)


@task
def add(a: int, b: int) -> int:
    get_run_logger().info("adding %d and %d", a, b)
    return a + b


@flow
def double(n: int) -> int:
    return n * 2


@flow(log_prints=True)
def greet(name: str = "you") -> int:
    print(f"hello {name}")
    return double(add(1, 2))


tries = []


@flow(retries=1, retry_delay_seconds=0)
def second_time():
    tries.append(1)
    if len(tries) == 1:
        raise ValueError("the first time")


@flow
def fails():
    raise ValueError("as written")


@flow(log_prints=True)
def waits():
    print("waiting")
    for _ in range(240):
        time.sleep(0.5)


def prefect(*args, ok=True):
    """The command line; it runs in an environment of its own, as a person's shell does."""
    done = subprocess.run([os.path.join(os.path.dirname(sys.executable), "prefect"), *args], capture_output=True, text=True, timeout=240, env={**os.environ, "COLUMNS": "250"})
    assert (done.returncode == 0) == ok, f"prefect {' '.join(args)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def end(process):
    """How long a process of the client's takes to end says nothing of the server."""
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()


def until(what, check, seconds=240):
    end = time.monotonic() + seconds
    while not (got := check()):
        assert time.monotonic() < end, f"{what} has not happened in {seconds} s"
        time.sleep(0.5)
    return got


def state(run_id):
    return client.read_flow_run(run_id).state


def awaited(run_id, name):
    until(f"{run_id} {name}", lambda: state(run_id).name == name or (state(run_id).is_final() and state(run_id).name != name))
    assert state(run_id).name == name, state(run_id)


def lines(run_id):
    return [l.message for l in client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run_id])))]


def called():
    """A flow that is called in a process of one's own."""
    made = greet("caller", return_state=True)
    assert made.result() == 6 and made.is_completed()
    run = client.read_flow_run(made.state_details.flow_run_id)
    assert run.state.is_completed() and run.deployment_id is None and run.run_count == 1 and run.parameters == {"name": "caller"}
    until("the log", lambda: {"hello caller", "adding 1 and 2"} <= set(lines(run.id)))
    second_time()
    assert len(tries) == 2
    assert fails(return_state=True).is_failed()
    listing = prefect("flow-run", "ls", "--limit", "200")  # other tests use the server too
    assert str(run.id) in listing and "greet" in prefect("flow", "ls", "--limit", "200")
    assert "hello caller" in prefect("flow-run", "logs", str(run.id))
    assert "caller" in prefect("flow-run", "inspect", str(run.id))
    return run


def worked(pool):
    """A deployment in a pool that the official worker polls."""
    prefect("work-pool", "create", pool, "--type", "process")
    assert pool in prefect("work-pool", "ls") and "process" in prefect("work-pool", "inspect", pool)
    prefect("work-pool", "pause", pool)
    assert client.read_work_pool(pool).is_paused
    prefect("work-pool", "resume", pool)
    assert "default" in prefect("work-queue", "ls", "--pool", pool)
    for fn in (greet, waits):
        flow.from_source(here, f"client.py:{fn.__name__}").deploy(name=unique, work_pool_name=pool, print_next_steps=False, ignore_warnings=True)
    assert unique in prefect("deployment", "ls")
    assert pool in prefect("deployment", "inspect", f"greet/{unique}")
    command = [os.path.join(os.path.dirname(sys.executable), "prefect"), "worker", "start", "--pool", pool, "--name", "w-" + unique]
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(command, stdout=log, stderr=log) as worker:
        try:
            until("the worker", lambda: [w for w in client_workers(pool) if w == "w-" + unique])
            deployed = client.read_deployment_by_name(f"greet/{unique}")
            prefect("deployment", "run", f"greet/{unique}", "--param", "name=worker")
            first = until("a run", lambda: [r for r in client.read_flow_runs() if r.deployment_id == deployed.id])[0]
            awaited(first.id, "Completed")
            until("the log", lambda: {"hello worker", "adding 1 and 2"} <= set(lines(first.id)))
            slow = client.create_flow_run_from_deployment(client.read_deployment_by_name(f"waits/{unique}").id)
            until("the flow", lambda: "waiting" in lines(slow.id))
            prefect("flow-run", "cancel", str(slow.id))
            awaited(slow.id, "Cancelled")
        except BaseException:
            log.seek(0)
            print(log.read()[-4000:], file=sys.stderr)
            raise
        finally:
            end(worker)
    for fn in ("greet", "waits"):
        prefect("deployment", "delete", f"{fn}/{unique}")
    prefect("work-pool", "delete", pool)
    prefect("work-pool", "inspect", pool, ok=False)
    return first


def client_workers(pool):
    response = client._client.post(f"/work_pools/{pool}/workers/filter", json={"workers": {"status": {"any_": ["ONLINE"]}}})
    response.raise_for_status()
    return [w["name"] for w in response.json()]


def served():
    """A deployment that a process of one's own serves, without a pool."""
    with subprocess.Popen([sys.executable, __file__, "serve", unique]) as server:
        try:
            deployed = until("the deployment", lambda: by_name(f"greet/served-{unique}"))
            run = client.create_flow_run_from_deployment(deployed.id, parameters={"name": "server"})
            awaited(run.id, "Completed")
            until("the log", lambda: "hello server" in lines(run.id))
        finally:
            end(server)
    prefect("deployment", "delete", f"greet/served-{unique}")


def by_name(name):
    try:
        return client.read_deployment_by_name(name)
    except Exception:
        return None


def kept():
    name = f"v_{unique}"
    Variable.set(name, {"a": [1]})
    assert Variable.get(name) == {"a": [1]} and name in prefect("variable", "ls")
    Variable.set(name, "b", overwrite=True)
    assert "b" in prefect("variable", "get", name)
    prefect("variable", "unset", name)
    assert Variable.get(name) is None
    for command in ("version", "config view", "block ls", "block type ls", "global-concurrency-limit ls", "automation ls", "work-queue ls"):
        prefect(*command.split())


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        greet.serve(name=f"served-{sys.argv[2]}", pause_on_shutdown=False)
    else:
        own = called()
        theirs = worked(sys.argv[1])
        served()
        kept()
        for run in (own, theirs):
            prefect("flow-run", "delete", str(run.id))
        print("ok")
