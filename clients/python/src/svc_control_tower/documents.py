"""The types of the API's documents."""

from __future__ import annotations

from typing import Any, TypedDict


class Revision(TypedDict):
    """One revision of a work unit."""

    id: str
    version: int
    digest: str
    source_revision: str


class Routing(TypedDict):
    policy_version: str
    authority_mode: str
    admitted_connectors: list[str]


class Attempt(TypedDict):
    attempt_id: str
    order: int
    connector_id: str
    state: str
    provider_reference: str | None
    candidate_reference_digest: str | None
    result_manifest_digest: str | None
    verification_semantic_digest: str | None
    error_code: str | None


class Authority(TypedDict):
    canonical_state_write: bool
    git_push: bool
    merge: bool


class Run(TypedDict):
    schema_version: str
    kind: str
    run_id: str
    request_digest: str
    project_id: str
    work_unit: Revision
    routing: Routing
    state: str
    attempts: list[Attempt]
    evidence_report_digest: str | None
    human_decision_record_digest: str | None
    authority: Authority


class Head(TypedDict):
    """What every answer about one thing starts with."""

    api_version: str
    schema_version: str
    kind: str
    ok: bool


class RunResponse(Head):
    run: Run
    idempotency_key: str
    create_request_digest: str
    created: bool
    replayed: bool
    provider_execution_terminated: bool
    candidate_accepted: bool
    merge_authority: bool


class RunAttemptsResponse(Head):
    run_id: str
    attempts: list[Attempt]


class RunEvidenceResponse(Head):
    run_id: str
    evidence_report_digest: str
    evidence_report: dict[str, Any]


class InspectionResponse(Head):
    snapshot_digest: str
    snapshot: dict[str, Any]


class RevisionCount(TypedDict):
    version: int
    digest: str
    source_revision: str
    run_count: int


class WorkUnit(TypedDict):
    id: str
    run_count: int
    revisions: list[RevisionCount]


class WorkUnitResponse(Head):
    work_unit: WorkUnit


class Project(TypedDict):
    project_id: str
    run_count: int
    runs_by_state: dict[str, int]
    work_unit_count: int


class ProjectResponse(Head):
    project: Project


class Connection(TypedDict):
    id: str
    kind: str
    driver: str
    enabled: bool
    auth_ref_configured: bool
    capability_tiers: list[str]
    task_classes: list[str]
    tools: list[str]
    candidate_types: list[str]
    max_risk: str
    external_processing: bool
    project_spend_usd_max: float
    max_concurrency: int


class ConnectionResponse(Head):
    connection: Connection


class Principal(TypedDict):
    type: str
    id: str


class EvidenceReference(TypedDict):
    kind: str
    digest: str


class Event(TypedDict):
    """An event envelope, with exactly these sixteen keys."""

    schema_version: str
    kind: str
    event_id: str
    sequence: int
    occurred_at: str
    event_type: str
    principal: Principal
    authority_class: str
    project_id: str
    work_unit_id: str
    run_id: str
    attempt_id: str | None
    source_revision: str | None
    evidence_reference: EvidenceReference | None
    payload: dict[str, Any]
    payload_digest: str


class Limits(TypedDict):
    request_timeout_seconds: float
    max_concurrent_requests: int
    retry_after_seconds: int
    drain_timeout_seconds: float
    max_request_line_bytes: int
    max_header_line_bytes: int
    max_header_count: int
    max_request_body_bytes: int
    overload_status: int
    connection_policy: str
    per_client_rate_limit: str
    max_sse_clients: int
    sse_heartbeat_seconds: float
    sse_max_stream_seconds: float


class Operations(TypedDict):
    request_id_header: str
    liveness: str
    readiness: str
    access_log_env: str
    access_logs_include_bodies: bool
    access_logs_include_authentication: bool
    trace_context: str
    limits: Limits


class StatusResponse(Head):
    service: str
    mode: str
    media_types: list[str]
    source_contracts: list[str]
    schemas: dict[str, str]
    capabilities: dict[str, bool]
    operations: Operations
    endpoints: dict[str, str]


class MetricsResponse(TypedDict):
    """Counters of the running process."""

    schema_version: str
    kind: str
    service: str
    service_version: str
    scope: str
    requests: dict[str, Any]
    latency_ms: dict[str, Any]
    concurrency: dict[str, int]
    admission: dict[str, Any]
    operations: dict[str, Any]
    dependencies: dict[str, Any]
    telemetry: dict[str, Any]
    authority: Authority
