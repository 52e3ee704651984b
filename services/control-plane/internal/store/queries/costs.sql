-- name: InsertCost :one
-- No row where the job was reported before.
insert into costs (id, tenant, model_id, version, scheduler, job_id, run_id, project, gpu_hours, cpu_hours, cost_usd, synthetic,
    recorded_at, updated_at, updated_by)
values (@id, @tenant, @model_id, @version, @scheduler, @job_id, @run_id, @project, @gpu_hours, @cpu_hours, @cost_usd, @synthetic,
    @now, @now, @updated_by)
on conflict (tenant, model_id, version, scheduler, job_id) do nothing
returning *;

-- name: LockCost :one
select * from costs
where tenant = @tenant and model_id = @model_id and version = @version and scheduler = @scheduler and job_id = @job_id
for update;

-- name: UpdateCost :one
update costs set run_id = @run_id, project = @project, gpu_hours = @gpu_hours, cpu_hours = @cpu_hours, cost_usd = @cost_usd,
    updated_at = @now, updated_by = @updated_by
where id = @id
returning *;

-- name: ListCosts :many
select * from costs
where tenant = @tenant
  and (sqlc.narg(model_id)::text is null or model_id = sqlc.narg(model_id))
  and (sqlc.narg(project)::text is null or project = sqlc.narg(project))
  and (sqlc.narg(version)::text is null or version = sqlc.narg(version))
  and (sqlc.narg(before)::uuid is null or id < sqlc.narg(before))
order by id desc
limit @max_rows;

-- name: SumCosts :many
-- By cost, then key. Jobs of one tracker run count as one run. Each row carries the totals of all groups, so
-- that page and totals are of one instant.
with chosen as (
    select case when @by_project::boolean then project else model_id end as key, gpu_hours, cost_usd,
        coalesce('run:' || run_id, scheduler || ':' || job_id || ':' || model_id || ':' || version) as run
    from costs
    where tenant = @tenant and (@include_synthetic::boolean or not synthetic)
      and (sqlc.narg(model_id)::text is null or model_id = sqlc.narg(model_id))
      and (sqlc.narg(project)::text is null or project = sqlc.narg(project))
), groups as (
    select key, sum(gpu_hours) as gpu_hours, sum(cost_usd) as cost_usd, count(distinct run) as runs from chosen group by key
), total as (
    select sum(gpu_hours) as gpu_hours, sum(cost_usd) as cost_usd, count(distinct run) as runs from chosen
)
select g.key::text as key, g.gpu_hours::numeric as gpu_hours, g.cost_usd::numeric as cost_usd, g.runs::bigint as runs,
    t.gpu_hours::numeric as total_gpu_hours, t.cost_usd::numeric as total_cost_usd, t.runs::bigint as total_runs
from groups g cross join total t
where sqlc.narg(after_key)::text is null
   or g.cost_usd < sqlc.narg(after_cost)::numeric
   or (g.cost_usd = sqlc.narg(after_cost)::numeric and g.key > sqlc.narg(after_key))
order by g.cost_usd desc, g.key
limit @max_rows;

-- name: SumHours :many
-- By model. Each row carries the totals of all models.
with chosen as (
    select model_id, gpu_hours, cpu_hours from costs
    where tenant = @tenant and (@include_synthetic::boolean or not synthetic)
), total as (
    select sum(gpu_hours) as gpu_hours, sum(cpu_hours) as cpu_hours from chosen
)
select c.model_id, sum(c.gpu_hours)::numeric as gpu_hours, sum(c.cpu_hours)::numeric as cpu_hours,
    t.gpu_hours::numeric as total_gpu_hours, t.cpu_hours::numeric as total_cpu_hours
from chosen c cross join total t
where c.model_id > @after::text
group by c.model_id, t.gpu_hours, t.cpu_hours
order by c.model_id
limit @max_rows;

-- name: SpendOf :one
select coalesce(sum(cost_usd), 0)::numeric as cost_usd from costs
where tenant = @tenant and recorded_at >= @since and recorded_at < @until and (@include_synthetic::boolean or not synthetic);

-- name: GetBudget :one
select * from budgets where tenant = @tenant and project = @project;

-- name: PutBudget :one
insert into budgets (tenant, project, period, cost_budget, gpu_hours_budget, updated_at, updated_by)
values (@tenant, @project, 'monthly', @cost_budget, @gpu_hours_budget, @now, @updated_by)
on conflict (tenant, project) do update set cost_budget = @cost_budget, gpu_hours_budget = @gpu_hours_budget,
    updated_at = @now, updated_by = @updated_by
returning *;

-- name: DeleteBudget :one
delete from budgets where tenant = @tenant and project = @project returning *;

-- name: ListBudgets :many
select sqlc.embed(b), coalesce(sum(c.cost_usd), 0)::numeric as spent_usd, coalesce(sum(c.gpu_hours), 0)::numeric as spent_gpu_hours
from budgets b
left join costs c on c.tenant = b.tenant and c.project = b.project and c.recorded_at >= @since and c.recorded_at < @until
    and (@include_synthetic::boolean or not c.synthetic)
where b.tenant = @tenant and b.project > @after::text
  and (sqlc.narg(project)::text is null or b.project = sqlc.narg(project))
group by b.tenant, b.project
order by b.project
limit @max_rows;

-- name: BudgetsOver :many
-- Of all tenants.
select sqlc.embed(b), sum(c.cost_usd)::numeric as spent_usd, sum(c.gpu_hours)::numeric as spent_gpu_hours
from budgets b
join costs c on c.tenant = b.tenant and c.project = b.project and c.recorded_at >= @since and c.recorded_at < @until
    and not c.synthetic
group by b.tenant, b.project
having sum(c.cost_usd) > b.cost_budget or sum(c.gpu_hours) > b.gpu_hours_budget
order by b.tenant, b.project;
