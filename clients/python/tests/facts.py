"""What this client reads of a running server, one fact a line.

Run as ``python3 -m tests.facts URL REPORT`` with the token in SVC_CONTROL_TOWER_TOKEN. The Go
client's test (clients/svc-cli/clients_test.go) reads the same and compares line by line.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from svc_control_tower import ApiResponseError, ControlTowerClient


def main(url: str, report: str) -> None:
    client = ControlTowerClient(url, os.environ["SVC_CONTROL_TOWER_TOKEN"], timeout=20)
    status = client.status().value
    print(
        "limits",
        len(status["operations"]["limits"]),
        status["operations"]["limits"]["max_sse_clients"],
    )
    print("paths", len(client.get_openapi().value["paths"]))
    print("streams", client.get_metrics().value["concurrency"]["event_stream_clients"])
    for run in client.iter_runs(page_size=1):
        run_id = run.value["run_id"]
        print("run", run_id, run.value["state"], client.get_run(run_id).metadata.content_digest)
        print(
            "attempts", [a["attempt_id"] for a in client.get_run_attempts(run_id).value["attempts"]]
        )
        try:
            evidence = client.get_run_evidence(run_id).value
            print("evidence", evidence["evidence_report_digest"])
        except ApiResponseError as err:
            print("no evidence", err.status_code, err.code)
    for run in client.iter_runs(state="cancelled", project_id="project/demo"):
        print("cancelled", run.value["run_id"])
    for unit in client.list_work_units().value.items:
        print("work unit", unit["id"], client.get_work_unit(unit["id"]).metadata.content_digest)
    print("project", client.get_project("project/demo").metadata.content_digest)
    for connection in client.list_connections(limit=200).value.items:
        print(
            "connection",
            connection["id"],
            client.get_connection(connection["id"]).metadata.content_digest,
        )
    print(
        "snapshot", client.inspect_run_evidence(Path(report).read_bytes()).value["snapshot_digest"]
    )
    events = client.list_events(limit=2).value
    print("events", [e["event_id"] for e in events.items], events.next_cursor is not None)
    last = 0
    for _ in range(4):  # one event a stream, each resumed after the one before
        with client.stream_events(idle_timeout=20, last_event_id=last, max_events=1) as stream:
            for event in stream:
                print("streamed", event.sequence, event.event_type, event.envelope["run_id"])
        last = stream.last_event_id or 0
    with client.stream_events(idle_timeout=20, last_event_id=last, max_seconds=0.2) as stream:
        print("after them", [event.sequence for event in stream], stream.end_reason)
    for call in (
        lambda: client.get_run("none"),
        lambda: client.get_run("foreign/batch-0001"),
        lambda: client.list_runs(cursor="x"),
        lambda: client.inspect_run_evidence(b"[]"),
        lambda: client.stream_events(idle_timeout=20, last_event_id=999).__enter__(),
    ):
        try:
            call()
        except ApiResponseError as err:
            print("refused", err.status_code, err.code, err.retryable)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
