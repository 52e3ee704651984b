-- Every prediction that was answered, for a while. The one index gives both the newest rows of a model
-- and alias and what lies beyond them; rows come in by COPY, so there is no other.
create table snapshots (
    id         bigint generated always as identity,
    model      text not null,
    alias      text not null, -- '' when the request named a version
    version    text not null,
    prediction double precision, -- null for a label that is no number
    label      text, -- null for models that answer a number
    source     text not null, -- http, pipeline, v2, bus
    job_id     text,
    norm       double precision not null,
    mean       double precision not null,
    std        double precision not null,
    ts         timestamptz not null,
    check (prediction is not null or label is not null)
);
create unique index snapshots_window on snapshots (model, alias, id);
create index snapshots_age on snapshots using brin (ts);

-- The sample that recent predictions are compared with.
create table drift_baselines (
    model       text not null,
    alias       text not null,
    kind        text not null check (kind in ('prediction', 'input')),
    version     text not null,
    predictions double precision[] not null,
    labels      text[], -- null for models that answer a number
    mean        double precision,
    std         double precision,
    set_at      timestamptz not null,
    set_by      text not null,
    primary key (model, alias, kind)
);

-- The level that was told last, so that only changes are told.
create table drift_states (
    model      text not null,
    alias      text not null,
    kind       text not null check (kind in ('prediction', 'input')),
    status     text not null,
    changed_at timestamptz not null,
    primary key (model, alias, kind)
);

---- create above / drop below ----

drop table drift_states;
drop table drift_baselines;
drop table snapshots;
