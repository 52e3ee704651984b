"""The worker: serves the deployment training_flow/platform-dispatch and runs the trainer for each of its runs."""

import json
import os
import subprocess

from prefect import flow, get_run_logger
from prefect.runtime import flow_run


@flow(name="training_flow", log_prints=True)
def training_flow(
    model_name: str,
    dataset_cls_name: str,
    is_dummy: bool = False,
    backend_name: str | None = None,
    commit_sha: str | None = None,
    tenant: str | None = None,
    request_id: str | None = None,
    requested_by: str | None = None,
    approval_id: str | None = None,
    parameters: dict | None = None,
) -> None:
    """Trains one model of the model repository and registers the version."""
    command = ["trainer", "train", "--model", model_name, "--dataset", dataset_cls_name, "--flow-run", flow_run.get_id()]
    for option, value in (
        ("--backend", backend_name),
        ("--commit", commit_sha),
        ("--tenant", tenant),
        ("--request-id", request_id),
        ("--requested-by", requested_by),
        ("--approval", approval_id),
        ("--parameters", json.dumps(parameters) if parameters else None),
    ):
        if value:
            command += [option, value]
    if is_dummy:
        command.append("--dummy")
    log = get_run_logger()
    # The trainer reports its progress on standard error, a line a stage.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as trainer:
        last = ""
        try:
            for line in trainer.stdout:
                if line.strip():
                    last = line.rstrip()
                    log.info("%s", last)
        except BaseException:  # cancelled: the trainer marks its own run as killed
            trainer.terminate()
            raise
    if trainer.returncode != 0:
        raise RuntimeError(f"the trainer ended with code {trainer.returncode}: {last}")


if __name__ == "__main__":
    training_flow.serve(
        name="platform-dispatch",
        limit=int(os.environ.get("PLATFORM_TRAINING_CONCURRENCY", "1")),
        webserver=True,
        pause_on_shutdown=False,  # another worker, or this one after a restart, takes the runs that wait
        print_starting_message=False,
    )
