-- Which models may be trained again because they drift. The row is also what keeps two triggers of a
-- model apart: whoever is about to dispatch holds claim until claim_until. A claim whose holder died is
-- continued under its own id, which is part of the dispatch's idempotency key; it ends in the
-- transaction that settles the dispatch.
create table auto_retrain (
    model_id          text primary key,
    enabled           boolean not null,
    dataset_name      text,
    min_z             double precision not null check (min_z > 0),
    cooldown_seconds  integer not null check (cooldown_seconds >= 0),
    gate              text not null check (gate in ('approval', 'direct')),
    kind              text not null check (kind in ('prediction', 'input', 'any')),
    updated_at        timestamptz not null,
    updated_by        text not null,
    last_outcome      text,
    claim             uuid,
    claim_until       timestamptz,
    claim_tenant      text,
    claim_by          text,
    claim_dataset     text,
    claim_z           double precision
);

-- When each tenant last triggered: a cooldown is its own, so that no stranger's trigger, whose approval
-- waits or is rejected elsewhere, keeps a drifted model from being trained.
create table auto_retrain_stamps (
    model_id     text not null,
    tenant       text not null,
    triggered_at timestamptz not null,
    primary key (model_id, tenant)
);

-- What fires, and for a day what fired: a slower reading must not bring back what a newer one has ended.
-- observed_at is the time of the fact that the row shows.
create table alerts (
    tenant      text not null,
    source      text not null,
    key         text not null,
    severity    text not null check (severity in ('critical', 'error', 'warn')),
    title       text not null,
    labels      jsonb not null,
    firing      boolean not null,
    since       timestamptz not null,
    observed_at timestamptz not null,
    primary key (source, key, tenant)
);
create index alerts_firing on alerts (tenant) where firing;

-- When each source was last read whole.
create table alert_sources (
    source  text primary key,
    read_at timestamptz not null
);

-- Why an alias was rolled back.
alter table alias_moves add column reason text;

---- create above / drop below ----

alter table alias_moves drop column reason;
drop table alert_sources, alerts, auto_retrain_stamps, auto_retrain;
