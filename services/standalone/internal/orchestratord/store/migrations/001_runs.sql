create table flow (
  id      uuid primary key,
  created timestamptz not null,
  updated timestamptz not null,
  name    text not null unique,
  tags    text[] not null,
  labels  jsonb not null
);

create table work_pool (
  id                uuid primary key,
  created           timestamptz not null,
  updated           timestamptz not null,
  name              text not null unique,
  description       text,
  type              text not null,
  base_job_template jsonb not null,
  is_paused         boolean not null,
  concurrency_limit integer,
  default_queue_id  uuid not null
);

create table worker (
  work_pool_id    uuid not null references work_pool on delete cascade,
  name            text not null,
  last_heartbeat  timestamptz not null,
  interval_seconds integer not null,
  primary key (work_pool_id, name)
);

create table deployment (
  id                       uuid primary key,
  created                  timestamptz not null,
  updated                  timestamptz not null,
  name                     text not null,
  flow_id                  uuid not null references flow on delete cascade,
  version                  text,
  description              text,
  paused                   boolean not null,
  concurrency_limit        integer,
  tags                     text[] not null,
  labels                   jsonb not null,
  parameters               jsonb not null,
  parameter_openapi_schema jsonb not null,
  enforce_parameter_schema boolean not null,
  work_pool_id             uuid references work_pool on delete set null,
  work_queue_name          text,
  path                     text,
  entrypoint               text,
  pull_steps               jsonb not null,
  job_variables            jsonb not null,
  last_polled              timestamptz,
  unique (flow_id, name)
);

create table deployment_schedule (
  id                 uuid primary key,
  created            timestamptz not null,
  updated            timestamptz not null,
  deployment_id      uuid not null references deployment on delete cascade,
  cron               text not null,
  timezone           text not null,
  active             boolean not null,
  max_scheduled_runs integer,
  parameters         jsonb not null,
  slug               text
);
create index on deployment_schedule (deployment_id);

create table flow_run (
  id                  uuid primary key,
  seq                 bigint generated always as identity,
  created             timestamptz not null,
  updated             timestamptz not null,
  name                text not null,
  flow_id             uuid not null references flow on delete cascade,
  deployment_id       uuid references deployment on delete set null,
  deployment_version  text,
  work_pool_id        uuid references work_pool on delete set null,
  work_queue_name     text,
  parameters          jsonb not null,
  idempotency_key     text,
  context             jsonb not null,
  tags                text[] not null,
  labels              jsonb not null,
  job_variables       jsonb not null,
  auto_scheduled      boolean not null,
  schedule_id         uuid,
  run_count           integer not null default 0,
  expected_start_time timestamptz,
  next_start_time     timestamptz,
  start_time          timestamptz,
  end_time            timestamptz,
  run_seconds         double precision not null default 0,
  log_lines           integer not null default 0,
  -- The present state: the newest row of flow_run_state, repeated here so that
  -- filters and the claim need no join.
  state_id            uuid not null,
  state_type          text not null,
  state_name          text not null,
  state_time          timestamptz not null,
  unique (flow_id, idempotency_key)
);
create index flow_run_due on flow_run (next_start_time, seq) where state_type = 'SCHEDULED';
create index flow_run_open on flow_run (state_type) where state_type in ('PENDING', 'RUNNING', 'CANCELLING', 'PAUSED');
create index on flow_run (deployment_id);
create index on flow_run (end_time);

create table flow_run_state (
  id            uuid primary key,
  seq           bigint generated always as identity,
  flow_run_id   uuid not null references flow_run on delete cascade,
  type          text not null,
  name          text not null,
  timestamp     timestamptz not null,
  message       text,
  data          jsonb,
  scheduled_time timestamptz
);
create index on flow_run_state (flow_run_id, seq);

create table log (
  id          uuid primary key,
  seq         bigint generated always as identity,
  created     timestamptz not null,
  flow_run_id uuid not null references flow_run on delete cascade,
  name        text not null,
  level       integer not null,
  message     text not null,
  timestamp   timestamptz not null
);
create index on log (flow_run_id, timestamp, seq);

---- create above / drop below ----

drop table log, flow_run_state, flow_run, deployment_schedule, deployment, worker, work_pool, flow;
