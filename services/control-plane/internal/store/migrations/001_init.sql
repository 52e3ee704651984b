-- Change notices: what their approval records share, kept once.
create table notices (
    id            uuid primary key,
    commit_msg    text not null,
    changed_files text[] not null
);

-- Approval records: retrains wait here for a decision, promotions mirror theirs.
create table approvals (
    id             uuid primary key,
    kind           text not null check (kind in ('retrain', 'promotion')),
    origin         text not null check (origin in ('ci', 'modelrepo', 'drift', 'promotion')),
    tenant         text not null,
    model_id       text not null,
    dataset_name   text,
    status         text not null check (status in ('pending', 'approving', 'approved', 'rejected', 'expired')),
    commit_sha     text not null,
    notice_id      uuid references notices (id),
    promotion_id   uuid,
    requested_by   text not null,
    requested_at   timestamptz not null,
    resolved_by    text,
    resolved_at    timestamptz,
    prefect_run_id text,
    reject_reason  text,
    expires_at     timestamptz,
    updated_at     timestamptz not null,
    updated_by     text not null
);
create unique index approvals_one_pending on approvals (tenant, model_id) where kind = 'retrain' and status = 'pending';
create unique index approvals_promotion on approvals (promotion_id);
create index approvals_tenant on approvals (tenant, id desc);
create index approvals_undecided on approvals (requested_at) where status in ('pending', 'approving');

-- Durable commands: written before the orchestrator is called, settled after. attempt fences: who
-- took a command over raised it, and the former owner's settlement matches no row any more.
create table commands (
    id               uuid primary key,
    kind             text not null check (kind in ('retrain', 'approval')),
    tenant           text not null,
    principal        text not null,
    key_hash         bytea,
    body_hash        bytea,
    orchestrator_key text not null,
    model_id         text not null,
    dataset_name     text not null,
    request          jsonb not null,
    approval_id      uuid references approvals (id),
    status           text not null check (status in ('dispatching', 'succeeded', 'failed')),
    attempt          integer not null,
    owner            uuid not null,
    lease_until      timestamptz not null,
    flow_run_id      text,
    response         jsonb,
    error            text,
    created_at       timestamptz not null,
    updated_at       timestamptz not null
);
create unique index commands_key on commands (tenant, principal, key_hash);
create unique index commands_retrain_in_flight on commands (tenant, model_id, dataset_name) where kind = 'retrain' and status = 'dispatching';
create index commands_open on commands (lease_until) where status = 'dispatching';
create index commands_old on commands (created_at) where status <> 'dispatching';

-- Training runs that this control plane dispatched.
create table runs (
    flow_run_id    text primary key,
    id             uuid not null unique,
    tenant         text not null,
    model_id       text not null,
    dataset_name   text not null,
    is_dummy       boolean not null,
    origin         text not null,
    approval_id    uuid,
    requested_by   text not null,
    request_id     text,
    commit_sha     text,
    state_type     text not null,
    state_name     text not null,
    terminal       boolean not null,
    model_version  text,
    tracker_run_id text,
    reason         text,
    dispatched_at  timestamptz not null,
    started_at     timestamptz,
    ended_at       timestamptz,
    checked_at     timestamptz not null,
    unknown_since  timestamptz
);
create index runs_tenant on runs (tenant, id desc);
create index runs_open on runs (dispatched_at) where not terminal;
create index runs_model_open on runs (model_id) where not terminal;

-- Versions the trainer reported. settled_at is null until the ladder has been climbed to its end.
create table versions (
    model_id       text not null,
    version        text not null,
    tenant         text not null,
    flow_run_id    text,
    tracker_run_id text,
    commit_sha     text,
    is_dummy       boolean not null,
    is_generated   boolean not null,
    metrics        jsonb not null,
    rungs          jsonb not null,
    aliases_set    text[] not null,
    promotion_id   uuid,
    reported_by    text not null,
    request_id     text,
    reported_at    timestamptz not null,
    settled_at     timestamptz,
    primary key (model_id, version)
);
create index versions_unsettled on versions (reported_at) where settled_at is null;

create table freshness (
    model_id                text primary key,
    status                  text not null check (status in ('current', 'stale', 'unknown')),
    latest_modelrepo_commit text,
    last_retrain_commit     text,
    stale_since             timestamptz,
    retrain_triggered_at    timestamptz,
    updated_at              timestamptz not null
);

-- removed_at keeps a deletion: loading the registry must not bring the policy back.
create table policies (
    model_id      text primary key,
    metric        text not null,
    operator      text not null check (operator in ('lt', 'gt', 'lte', 'gte')),
    threshold     double precision not null,
    from_alias    text not null,
    to_alias      text not null,
    enabled       boolean not null,
    require_eval  boolean not null,
    approval_mode text not null check (approval_mode in ('each', 'run')),
    updated_at    timestamptz not null,
    updated_by    text not null,
    removed_at    timestamptz
);

create table promotions (
    id               uuid primary key,
    tenant           text not null,
    model_id         text not null,
    version          text not null,
    from_alias       text not null,
    to_alias         text not null,
    state            text not null check (state in ('pending', 'approved', 'promoted', 'failed', 'rejected', 'expired', 'superseded')),
    origin           text not null check (origin in ('request', 'ladder')),
    conditions       jsonb not null,
    previous_version text,
    flow_run_id      text,
    requested_by     text not null,
    requested_at     timestamptz not null,
    decided_by       text,
    decided_at       timestamptz,
    reason           text,
    expires_at       timestamptz,
    updated_at       timestamptz not null,
    updated_by       text not null
);
create unique index promotions_one_pending on promotions (tenant, model_id, to_alias) where state = 'pending';
create index promotions_tenant on promotions (tenant, id desc);
create index promotions_model on promotions (model_id, version, to_alias);

-- Intents to move an alias: written before the tracker is called, finished after.
create table alias_moves (
    id               uuid primary key,
    model_id         text not null,
    alias            text not null,
    version          text not null,
    previous_version text,
    via              text not null check (via in ('promotion', 'rollback', 'ladder')),
    promotion_id     uuid,
    tenant           text not null,
    actor            text not null,
    request_id       text,
    state            text not null check (state in ('moving', 'moved', 'failed')),
    attempts         integer not null,
    next_attempt_at  timestamptz not null,
    error            text,
    created_at       timestamptz not null,
    finished_at      timestamptz
);
create unique index alias_moves_one on alias_moves (model_id, alias) where state = 'moving';

-- Who held an alias when; until_at is null for the present holder, version null where it was removed.
create table alias_history (
    id               uuid primary key,
    model_id         text not null,
    alias            text not null,
    version          text,
    previous_version text,
    from_at          timestamptz not null,
    until_at         timestamptz,
    actor            text not null,
    via              text not null check (via in ('promotion', 'rollback', 'ladder', 'external')),
    promotion_id     uuid
);
create unique index alias_history_now on alias_history (model_id, alias) where until_at is null;
create index alias_history_model on alias_history (model_id, alias, from_at desc);

---- create above / drop below ----

drop table alias_history, alias_moves, promotions, policies, freshness, versions, runs, commands, approvals, notices;
