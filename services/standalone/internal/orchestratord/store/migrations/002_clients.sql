-- What the official client and its worker need beside the platform's own runs.

alter table flow_run
  add column elsewhere boolean not null default false, -- carried out by a process of the client's, never by this server
  add column parent_task_run_id uuid,
  add column flow_version text,
  add column infrastructure_pid text,
  add column empirical_policy jsonb not null default '{}'; -- how often and after how long it is tried again
create index on flow_run (parent_task_run_id) where parent_task_run_id is not null;

create table variable (
  id      uuid primary key,
  created timestamptz not null,
  updated timestamptz not null,
  name    text not null unique,
  value   jsonb not null,
  tags    text[] not null
);

create table task_run (
  id          uuid primary key,
  created     timestamptz not null,
  updated     timestamptz not null,
  name        text not null,
  flow_run_id uuid not null references flow_run on delete cascade,
  task_key    text not null,
  dynamic_key text not null,
  tags        text[] not null,
  task_inputs jsonb not null,
  unique (flow_run_id, task_key, dynamic_key)
);

---- create above / drop below ----

drop table variable, task_run;
alter table flow_run drop column elsewhere, drop column parent_task_run_id, drop column flow_version,
  drop column infrastructure_pid, drop column empirical_policy;
