-- name: InsertRun :execrows
insert into flow_run (id, created, updated, name, flow_id, deployment_id, deployment_version, work_pool_id, work_queue_name,
  parameters, idempotency_key, context, tags, labels, job_variables, auto_scheduled, schedule_id,
  expected_start_time, next_start_time, state_id, state_type, state_name, state_time,
  elsewhere, parent_task_run_id, flow_version, empirical_policy)
values (@id, @now, @now, @name, @flow_id, @deployment_id, @deployment_version, @work_pool_id, @work_queue_name,
  @parameters, @idempotency_key, @context, @tags, @labels, @job_variables, @auto_scheduled, @schedule_id,
  @expected_start_time, @next_start_time, @state_id, @state_type, @state_name, @now,
  @elsewhere, @parent_task_run_id, @flow_version, @empirical_policy)
on conflict (flow_id, idempotency_key) do nothing;

-- name: InsertState :exec
insert into flow_run_state (id, flow_run_id, type, name, timestamp, message, data, scheduled_time)
values (@id, @flow_run_id, @type, @name, @timestamp, @message, @data, @scheduled_time);

-- name: RunByKey :one
select id from flow_run where flow_id = @flow_id and idempotency_key = @idempotency_key;

-- name: LockRun :one
-- Without a join to the state: whoever waited for the lock would have it joined to the state of before, and find no run.
select r.id, r.deployment_id, r.state_id, r.state_type, r.state_name, r.state_time, r.run_count, r.expected_start_time,
  r.next_start_time, r.start_time, r.empirical_policy
from flow_run r where r.id = @id for update;

-- name: MoveRun :exec
update flow_run set updated = @now, state_id = @state_id, state_type = @state_type, state_name = @state_name, state_time = @now,
  run_count = @run_count, expected_start_time = @expected_start_time, next_start_time = @next_start_time,
  start_time = @start_time, end_time = @end_time, run_seconds = run_seconds + @ran::double precision
where id = @id;

-- name: UpdateRun :execrows
update flow_run set updated = @now, name = coalesce(sqlc.narg(name), name), parameters = coalesce(sqlc.narg(parameters)::jsonb, parameters),
  tags = coalesce(sqlc.narg(tags)::text[], tags), flow_version = coalesce(sqlc.narg(flow_version), flow_version),
  infrastructure_pid = coalesce(sqlc.narg(infrastructure_pid), infrastructure_pid),
  empirical_policy = coalesce(sqlc.narg(empirical_policy)::jsonb, empirical_policy),
  job_variables = coalesce(sqlc.narg(job_variables)::jsonb, job_variables)
where id = @id;

-- name: LabelRun :execrows
update flow_run set updated = @now, labels = labels || @labels::jsonb where id = @id;

-- name: DeleteRun :execrows
delete from flow_run where id = @id;

-- name: States :many
select * from flow_run_state where flow_run_id = @flow_run_id order by seq;

-- name: StateByID :one
select * from flow_run_state where id = @id;

-- name: ClaimDue :one
-- The oldest due run that this server runs itself: of a deployment without a
-- pool or with one of the in-process type. Limits of deployment and pool hold.
select r.id from flow_run r
left join deployment d on d.id = r.deployment_id
left join work_pool p on p.id = r.work_pool_id
where r.state_type = 'SCHEDULED' and r.next_start_time <= @now and not r.elsewhere
  and (p.id is null or (p.type = @in_process and not p.is_paused))
  and not (r.id = any(@executing::uuid[]))
  and (d.concurrency_limit is null or d.concurrency_limit > (select count(*) from flow_run o
        where o.deployment_id = d.id and o.state_type in ('PENDING', 'RUNNING', 'CANCELLING')))
  and (p.concurrency_limit is null or p.concurrency_limit > (select count(*) from flow_run o
        where o.work_pool_id = p.id and o.state_type in ('PENDING', 'RUNNING', 'CANCELLING')))
order by r.next_start_time, r.seq
limit 1 for update of r skip locked;

-- name: Abandoned :many
-- Runs that this server was carrying out.
select r.id, r.state_type from flow_run r left join work_pool p on p.id = r.work_pool_id
where r.state_type in ('PENDING', 'RUNNING', 'CANCELLING') and not r.elsewhere and (p.id is null or p.type = @in_process)
order by r.seq;

-- name: StateTypes :many
select id, state_type from flow_run where id = any(@ids::uuid[]);

-- name: ReserveLogLines :one
update flow_run set log_lines = log_lines + @lines::integer where id = @id returning log_lines;

-- name: InsertLog :exec
insert into log (id, created, flow_run_id, name, level, message, timestamp)
select unnest(@ids::uuid[]), @now, @flow_run_id, unnest(@names::text[]), unnest(@levels::integer[]), unnest(@messages::text[]), unnest(@timestamps::timestamptz[]);

-- name: PruneLogs :execrows
with old as (
  update flow_run set log_lines = 0
  where id in (select o.id from flow_run o where o.end_time < @before and o.log_lines > 0 order by o.end_time limit 100)
  returning flow_run.id)
delete from log where flow_run_id in (select old.id from old);

-- name: LockSlots :exec
select pg_advisory_xact_lock(hashtextextended(d.id::text, 1)) from deployment d where d.id = @id;

-- name: AtLimit :one
select (d.concurrency_limit is not null and d.concurrency_limit <= (select count(*) from flow_run r
  where r.deployment_id = d.id and r.state_type in ('PENDING', 'RUNNING', 'CANCELLING')))::boolean
from deployment d where d.id = @id;
