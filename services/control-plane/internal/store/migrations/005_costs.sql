-- What each job of a version used. Money and hours are decimals, so that a sum is exact and does not depend
-- on the order of its rows. recorded_at is the first report: it decides the month of the spend, also after
-- later reports.
create table costs (
    id          uuid primary key,
    tenant      text not null,
    model_id    text not null,
    version     text not null,
    scheduler   text not null check (scheduler in ('slurm', 'flux', 'mock')),
    job_id      text not null,
    run_id      text,
    project     text not null,
    gpu_hours   numeric(20, 6) not null check (gpu_hours >= 0),
    cpu_hours   numeric(20, 6) not null check (cpu_hours >= 0),
    cost_usd    numeric(20, 6) not null check (cost_usd >= 0),
    synthetic   boolean not null,
    recorded_at timestamptz not null,
    updated_at  timestamptz not null,
    updated_by  text not null,
    unique (tenant, model_id, version, scheduler, job_id)
);
create index costs_tenant on costs (tenant, id desc);
create index costs_month on costs (tenant, project, recorded_at);

-- A null budget limits nothing; 0 allows nothing.
create table budgets (
    tenant           text not null,
    project          text not null,
    period           text not null check (period = 'monthly'),
    cost_budget      numeric(20, 6) check (cost_budget >= 0),
    gpu_hours_budget numeric(20, 6) check (gpu_hours_budget >= 0),
    updated_at       timestamptz not null,
    updated_by       text not null,
    primary key (tenant, project)
);

-- Batch jobs of the facility. They belong to no tenant: every tenant may read them. Each cluster counts its
-- jobs by itself, so an id may come back on another.
create table jobs (
    id             uuid primary key,
    scheduler      text not null check (scheduler in ('slurm', 'flux', 'mock')),
    cluster        text not null,
    job_id         text not null,
    model_id       text not null,
    dataset        text,
    state          text not null check (state in ('SUBMITTED', 'PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED', 'TIMEOUT', 'UNKNOWN')),
    partition      text,
    nodes          integer not null check (nodes >= 0),
    gpus           integer not null check (gpus >= 0),
    cpus           integer not null check (cpus >= 0),
    submit_at      timestamptz not null,
    start_at       timestamptz,
    end_at         timestamptz,
    exit_code      integer,
    flow_run_id    text,
    tracker_run_id text,
    updated_at     timestamptz not null,
    updated_by     text not null,
    unique (scheduler, cluster, job_id)
);
create index jobs_job on jobs (job_id);
create index jobs_cluster on jobs (cluster, id desc);
create index jobs_open on jobs (cluster, partition) where state in ('SUBMITTED', 'PENDING', 'RUNNING');

---- create above / drop below ----

drop table jobs, budgets, costs;
