-- name: InsertEval :one
-- No row where the tenant has recorded that run before.
insert into evals (id, tenant, model_id, version, suite, status, metrics, run_id, updated_at, updated_by)
values (@id, @tenant, @model_id, @version, @suite, @status, @metrics, @run_id, @now, @updated_by)
on conflict (tenant, run_id) do nothing
returning *;

-- name: EvalOfRun :one
select * from evals where tenant = @tenant and run_id = @run_id;

-- name: ListEvals :many
select e.* from evals e
where e.tenant in (@tenant, 'platform')
  and (sqlc.narg(model_id)::text is null or e.model_id = sqlc.narg(model_id))
  and (sqlc.narg(before)::uuid is null or e.id < sqlc.narg(before))
order by e.id desc
limit @max_rows;

-- name: ListLatestEvals :many
-- The latest of each model. The index is asked for one model after the other, since runs are kept for ever.
with recursive models as (
    (select m.model_id from evals m order by m.model_id limit 1)
    union all
    select n.model_id from models cross join lateral (
        select m.model_id from evals m where m.model_id > models.model_id order by m.model_id limit 1) n
), ids as (
    select max(newest.id::text)::uuid as id
    from models cross join unnest(array[@tenant::text, 'platform']) t (tenant)
    cross join lateral (
        select e.id from evals e where e.model_id = models.model_id and e.tenant = t.tenant order by e.id desc limit 1) newest
    where sqlc.narg(model_id)::text is null or models.model_id = sqlc.narg(model_id)
    group by models.model_id
)
select e.* from evals e
where e.id in (select ids.id from ids where sqlc.narg(before)::uuid is null or ids.id < sqlc.narg(before))
order by e.id desc
limit @max_rows;

-- name: LatestEvalsOfVersion :many
-- The latest of each suite, in the order of suites.
select distinct on (suite) * from evals
where tenant in (@tenant, 'platform') and model_id = @model_id and version = @version
order by suite, id desc;

-- name: LatestFailingEvals :many
-- Of all tenants: the latest run of each model and suite, where a metric of it failed. As above, by one suite
-- after the other.
with recursive suites as (
    (select f.tenant, f.model_id, f.suite from evals f order by f.tenant, f.model_id, f.suite limit 1)
    union all
    select n.tenant, n.model_id, n.suite from suites cross join lateral (
        select f.tenant, f.model_id, f.suite from evals f
        where (f.tenant, f.model_id, f.suite) > (suites.tenant, suites.model_id, suites.suite)
        order by f.tenant, f.model_id, f.suite limit 1) n
), ids as (
    select newest.id from suites cross join lateral (
        select e.id from evals e where e.tenant = suites.tenant and e.model_id = suites.model_id and e.suite = suites.suite
        order by e.id desc limit 1) newest
)
select e.* from evals e
where e.id in (select ids.id from ids) and e.metrics @> '[{"passed": false}]'
order by e.tenant, e.model_id, e.suite;

-- name: ListLLMEndpoints :many
select e.* from llm_endpoints e
where e.model_id > @after::text
  and (e.tenant = @tenant or e.tenant = 'platform' and not exists (
    select 1 from llm_endpoints own where own.tenant = @tenant and own.model_id = e.model_id))
order by e.model_id
limit @max_rows;

-- name: GetLLMEndpoint :one
select * from llm_endpoints where tenant = @tenant and model_id = @model_id;

-- name: PutLLMEndpoint :one
insert into llm_endpoints (tenant, model_id, engine, hosted_model_id, max_model_len, tensor_parallel, dtype, enabled, updated_at, updated_by)
values (@tenant, @model_id, @engine, @hosted_model_id, @max_model_len, @tensor_parallel, @dtype, @enabled, @now, @updated_by)
on conflict (tenant, model_id) do update set engine = @engine, hosted_model_id = @hosted_model_id, max_model_len = @max_model_len,
    tensor_parallel = @tensor_parallel, dtype = @dtype, enabled = @enabled, updated_at = @now, updated_by = @updated_by
returning *;

-- name: DeleteLLMEndpoint :one
delete from llm_endpoints where tenant = @tenant and model_id = @model_id returning *;

-- name: ModelKnown :one
-- Beside the models of the repository: a hosted one, and one that once held an alias.
select (exists (select 1 from llm_endpoints e where e.tenant in (@tenant, 'platform') and e.model_id = @model_id)
    or exists (select 1 from alias_history h where h.model_id = @model_id))::bool as known;

-- name: ListCompliance :many
select c.* from compliance c
where (sqlc.narg(model_id)::text is null or c.model_id = sqlc.narg(model_id))
  and (c.model_id, c.version) > (@after_model::text, @after_version::text)
  and (c.tenant = @tenant or c.tenant = 'platform' and not exists (
    select 1 from compliance own where own.tenant = @tenant and own.model_id = c.model_id and own.version = c.version))
order by c.model_id, c.version
limit @max_rows;

-- name: GetCompliance :one
select * from compliance where tenant = @tenant and model_id = @model_id and version = @version;

-- name: PutCompliance :one
insert into compliance (tenant, model_id, version, risk_class, technical_file, provenance, updated_at, updated_by)
values (@tenant, @model_id, @version, @risk_class, @technical_file, @provenance, @now, @updated_by)
on conflict (tenant, model_id, version) do update set risk_class = @risk_class, technical_file = @technical_file,
    provenance = @provenance, updated_at = @now, updated_by = @updated_by
returning *;

-- name: GetModelCard :one
-- The one in force.
select * from model_cards where tenant in (@tenant, 'platform') and model_id = @model_id order by tenant = @tenant desc limit 1;

-- name: GetOwnModelCard :one
select * from model_cards where tenant = @tenant and model_id = @model_id;

-- name: ModelCardIndex :many
-- Sizes in bytes, so that a page can be cut before its text is read.
select c.model_id, octet_length(c.markdown)::int as size from model_cards c
where c.tenant = @tenant or c.tenant = 'platform' and not exists (
    select 1 from model_cards own where own.tenant = @tenant and own.model_id = c.model_id)
order by c.model_id;

-- name: ModelCardsOf :many
select c.* from model_cards c
where c.model_id = any(@model_ids::text[])
  and (c.tenant = @tenant or c.tenant = 'platform' and not exists (
    select 1 from model_cards own where own.tenant = @tenant and own.model_id = c.model_id));

-- name: HostedModels :many
select distinct model_id from llm_endpoints where tenant in (@tenant, 'platform') order by model_id;

-- name: PutModelCard :one
insert into model_cards (tenant, model_id, version, markdown, source, updated_at, updated_by)
values (@tenant, @model_id, @version, @markdown, @source, @now, @updated_by)
on conflict (tenant, model_id) do update set version = @version, markdown = @markdown, source = @source,
    updated_at = @now, updated_by = @updated_by
returning *;

-- name: ServedModels :many
-- Who holds Production, how that version is classified, and whether somebody wrote the model's card.
select h.model_id, h.version::text as version,
    coalesce((select c.risk_class from compliance c
        where c.model_id = h.model_id and c.version = h.version and c.tenant in (@tenant, 'platform')
        order by c.tenant = @tenant desc limit 1), '')::text as risk_class,
    exists (select 1 from model_cards m where m.model_id = h.model_id and m.tenant in (@tenant, 'platform'))::bool as carded
from alias_history h
where h.alias = 'Production' and h.until_at is null and h.version is not null
order by h.model_id;

-- name: CountRunsByAuthority :one
-- Automatic runs without a record rest on a setting that somebody enabled.
select count(*) as total,
    count(*) filter (where a.status = 'approved') as approved,
    count(*) filter (where r.approval_id is null and r.origin in ('modelrepo', 'drift')) as standing
from runs r left join approvals a on a.id = r.approval_id and a.tenant = r.tenant
where r.tenant = @tenant and r.dispatched_at >= @since;

-- name: RunsWithoutAuthority :many
select r.flow_run_id, r.model_id, r.requested_by from runs r left join approvals a on a.id = r.approval_id and a.tenant = r.tenant
where r.tenant = @tenant and r.dispatched_at >= @since
  and a.status is distinct from 'approved'
  and not (r.approval_id is null and r.origin in ('modelrepo', 'drift'))
order by r.dispatched_at desc
limit @max_rows;

-- name: ChainsOf :many
-- The chains whose facts a tenant may read, with the last verification of each. One that lost its head is
-- still there.
select t.tenant::text as tenant, coalesce(h.seq, 0)::bigint as seq, v.verified, v.checked, v.first_bad_seq, v.reason, v.verified_at
from (select tenant from audit_heads union select tenant from audit_checkpoints union select tenant from audit_verdicts) t
left join audit_heads h on h.tenant = t.tenant
left join audit_verdicts v on v.tenant = t.tenant
where t.tenant in (@tenant::text, 'platform')
order by 1;
