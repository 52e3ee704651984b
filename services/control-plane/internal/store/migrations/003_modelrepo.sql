-- What an operator set of the model repository: one row, made at the first start.
create table modelrepo_config (
    id                    smallint primary key check (id = 1),
    auto_retrain          boolean not null,
    poll_interval_seconds integer not null,
    watch_branch          text not null,
    stale_scope           text not null check (stale_scope in ('all', 'touched')),
    gate                  text not null check (gate in ('approval', 'direct')),
    updated_at            timestamptz not null,
    updated_by            text not null
);

-- Heads that the watched branch was seen to have, oldest first. touched names the models whose
-- files changed, touched_all stands for files that are not known. work_until is null once nothing
-- is left to do for the push; before it the work belongs to the process that took it.
create table pushes (
    id          bigint generated always as identity primary key,
    commit_sha  text not null,
    branch      text not null,
    pushed_by   text not null,
    source      text not null check (source in ('webhook', 'poll')),
    delivery_id text,
    touched     text[] not null,
    touched_all boolean not null,
    dispatch    boolean not null,
    trigger_ci  boolean not null,
    work_until  timestamptz,
    received_at timestamptz not null
);
create index pushes_commit on pushes (commit_sha, id desc);
create index pushes_work on pushes (work_until) where work_until is not null;

-- Deliveries of the last 30 days, so that a repeat is known.
create table push_deliveries (
    delivery_id text primary key,
    push_id     bigint not null references pushes (id),
    received_at timestamptz not null
);
create index push_deliveries_old on push_deliveries (received_at);

---- create above / drop below ----

drop table push_deliveries, pushes, modelrepo_config;
