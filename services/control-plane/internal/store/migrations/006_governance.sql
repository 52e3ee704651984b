-- Models belong to the whole platform; what is recorded of them belongs to the tenant of its writer. A tenant
-- sees its own records and those of tenant platform; of two with one key its own is in force.

-- Evaluation runs that have ended. They never change: what was measured was measured.
create table evals (
    id         uuid primary key,
    tenant     text not null,
    model_id   text not null,
    version    text not null,
    suite      text not null,
    status     text not null check (status in ('passed', 'failed', 'error')),
    metrics    jsonb not null,
    run_id     text,
    updated_at timestamptz not null,
    updated_by text not null
);
create unique index evals_run on evals (tenant, run_id);
create index evals_tenant on evals (tenant, id desc);
create index evals_model on evals (model_id, tenant, id desc);
create index evals_suite on evals (tenant, model_id, suite, id desc);

create table llm_endpoints (
    tenant          text not null,
    model_id        text not null,
    engine          text not null,
    hosted_model_id text not null,
    max_model_len   integer not null check (max_model_len > 0),
    tensor_parallel integer not null check (tensor_parallel > 0),
    dtype           text not null,
    enabled         boolean not null,
    updated_at      timestamptz not null,
    updated_by      text not null,
    primary key (tenant, model_id)
);

create table compliance (
    tenant         text not null,
    model_id       text not null,
    version        text not null,
    risk_class     text not null check (risk_class in ('minimal', 'limited', 'high', 'prohibited')),
    technical_file text,
    provenance     text check (provenance ~ '^[0-9a-f]{64}$'),
    updated_at     timestamptz not null,
    updated_by     text not null,
    primary key (tenant, model_id, version)
);

create table model_cards (
    tenant     text not null,
    model_id   text not null,
    version    text,
    markdown   text not null check (octet_length(markdown) <= 262144),
    source     text not null,
    updated_at timestamptz not null,
    updated_by text not null,
    primary key (tenant, model_id)
);

-- For the posture, which looks at the runs of 90 days.
create index runs_since on runs (tenant, dispatched_at);

---- create above / drop below ----

drop index runs_since;
drop table model_cards, compliance, llm_endpoints, evals;
