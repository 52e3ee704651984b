-- name: UpsertDeployment :one
insert into deployment (id, created, updated, name, flow_id, version, description, paused, concurrency_limit, tags, labels,
  parameters, parameter_openapi_schema, enforce_parameter_schema, work_pool_id, work_queue_name, path, entrypoint, pull_steps, job_variables)
values (@id, @now, @now, @name, @flow_id, @version, @description, @paused, @concurrency_limit, @tags, @labels,
  @parameters, @parameter_openapi_schema, @enforce_parameter_schema, @work_pool_id, @work_queue_name, @path, @entrypoint, @pull_steps, @job_variables)
on conflict (flow_id, name) do update set updated = excluded.updated, version = excluded.version, description = excluded.description,
  paused = excluded.paused, concurrency_limit = excluded.concurrency_limit, tags = excluded.tags, labels = excluded.labels,
  parameters = excluded.parameters, parameter_openapi_schema = excluded.parameter_openapi_schema,
  enforce_parameter_schema = excluded.enforce_parameter_schema, work_pool_id = excluded.work_pool_id,
  work_queue_name = excluded.work_queue_name, path = excluded.path, entrypoint = excluded.entrypoint,
  pull_steps = excluded.pull_steps, job_variables = excluded.job_variables
returning id;

-- name: LockDeployment :one
select id from deployment where id = @id for update;

-- name: UpdateDeployment :exec
update deployment set updated = @now, version = @version, description = @description, paused = @paused,
  concurrency_limit = @concurrency_limit, tags = @tags, parameters = @parameters,
  parameter_openapi_schema = @parameter_openapi_schema, enforce_parameter_schema = @enforce_parameter_schema,
  work_pool_id = @work_pool_id, work_queue_name = @work_queue_name, path = @path, entrypoint = @entrypoint,
  pull_steps = @pull_steps, job_variables = @job_variables
where id = @id;

-- name: PauseDeployment :execrows
update deployment set paused = @paused, updated = @now where id = @id;

-- name: DeleteDeployment :execrows
delete from deployment where id = @id;

-- name: DeploymentID :one
select d.id from deployment d join flow f on f.id = d.flow_id where f.name = @flow and d.name = @name;

-- name: DeploymentIDs :many
select d.id from deployment d join flow f on f.id = d.flow_id
where (cardinality(@ids::uuid[]) = 0 or d.id = any(@ids))
  and (cardinality(@names::text[]) = 0 or d.name = any(@names))
  and (cardinality(@flow_ids::uuid[]) = 0 or f.id = any(@flow_ids))
  and (cardinality(@flow_names::text[]) = 0 or f.name = any(@flow_names))
  and (cardinality(@tags::text[]) = 0 or d.tags @> @tags)
  and (sqlc.narg(paused)::boolean is null or d.paused = sqlc.narg(paused))
  and (cardinality(@pools::text[]) = 0 or exists (select from work_pool p where p.id = d.work_pool_id and p.name = any(@pools)))
order by case when @sort::text = 'CREATED_DESC' then d.created when @sort = 'UPDATED_DESC' then d.updated end desc,
  case when @sort = 'NAME_DESC' then d.name end desc, d.name, d.id
limit @max offset @skip;

-- name: CountDeployments :one
select count(*) from deployment;

-- name: Deployments :many
select sqlc.embed(d), p.name as work_pool_name, p.type as work_pool_type, p.default_queue_id,
  coalesce((select bool_or(w.last_heartbeat + make_interval(secs => 3 * w.interval_seconds) > @now::timestamptz)
    from worker w where w.work_pool_id = d.work_pool_id), false)::boolean as polled
from deployment d left join work_pool p on p.id = d.work_pool_id
where d.id = any(@ids::uuid[]);

-- name: InsertSchedule :exec
insert into deployment_schedule (id, created, updated, deployment_id, cron, timezone, active, max_scheduled_runs, parameters, slug)
values (@id, @now, @now, @deployment_id, @cron, @timezone, @active, @max_scheduled_runs, @parameters, @slug);

-- name: UpdateSchedule :execrows
update deployment_schedule set updated = @now, cron = @cron, timezone = @timezone, active = @active,
  max_scheduled_runs = @max_scheduled_runs, parameters = @parameters, slug = @slug
where id = @id and deployment_id = @deployment_id;

-- name: DeleteSchedule :execrows
delete from deployment_schedule where id = @id and deployment_id = @deployment_id;

-- name: DeleteSchedules :exec
delete from deployment_schedule where deployment_id = @deployment_id;

-- name: Schedules :many
select * from deployment_schedule where deployment_id = any(@deployment_ids::uuid[]) order by created, id;

-- name: ActiveDeployments :many
select distinct d.id from deployment d join deployment_schedule s on s.deployment_id = d.id
where s.active and not d.paused order by d.id;

-- name: DeleteScheduledRuns :exec
delete from flow_run
where deployment_id = @deployment_id::uuid and state_type = 'SCHEDULED' and (auto_scheduled or not @auto_only::boolean) and run_count = 0;

-- name: EnsureDeployment :exec
insert into deployment (id, created, updated, name, flow_id, description, paused, tags, labels, parameters,
  parameter_openapi_schema, enforce_parameter_schema, pull_steps, job_variables)
values (@id, @now, @now, @name, @flow_id, @description, false, '{}', '{}', '{}', @parameter_openapi_schema, true, '[]', '{}')
on conflict (flow_id, name) do update set updated = excluded.updated, description = excluded.description,
  parameter_openapi_schema = excluded.parameter_openapi_schema
where deployment.description is distinct from excluded.description
   or deployment.parameter_openapi_schema is distinct from excluded.parameter_openapi_schema;
