-- name: InsertWorkPool :execrows
insert into work_pool (id, created, updated, name, description, type, base_job_template, is_paused, concurrency_limit, default_queue_id)
values (@id, @now, @now, @name, @description, @type, @base_job_template, @is_paused, @concurrency_limit, @default_queue_id)
on conflict (name) do nothing;

-- name: WorkPoolByName :one
select sqlc.embed(p), coalesce((select bool_or(w.last_heartbeat + make_interval(secs => 3 * w.interval_seconds) > @now::timestamptz)
  from worker w where w.work_pool_id = p.id), false)::boolean as polled
from work_pool p where p.name = @name;

-- name: WorkPools :many
select sqlc.embed(p), coalesce((select bool_or(w.last_heartbeat + make_interval(secs => 3 * w.interval_seconds) > @now::timestamptz)
  from worker w where w.work_pool_id = p.id), false)::boolean as polled
from work_pool p
where (cardinality(@ids::uuid[]) = 0 or p.id = any(@ids))
  and (cardinality(@names::text[]) = 0 or p.name = any(@names))
  and (cardinality(@types::text[]) = 0 or p.type = any(@types))
  and (cardinality(@queue_ids::uuid[]) = 0 or p.default_queue_id = any(@queue_ids))
order by p.name limit @max offset @skip;

-- name: CountWorkPools :one
select count(*) from work_pool;

-- name: LockWorkPool :one
select * from work_pool where name = @name for update;

-- name: UpdateWorkPool :exec
update work_pool set updated = @now, description = @description, base_job_template = @base_job_template, is_paused = @is_paused,
  concurrency_limit = @concurrency_limit
where id = @id;

-- name: DeploymentsOfPool :one
select count(*) from deployment where work_pool_id = @work_pool_id;

-- name: LeaveRunsOfPool :exec
-- Runs whose pool goes are nobody's, above all not this server's own.
update flow_run set elsewhere = true where work_pool_id = @work_pool_id;

-- name: DeleteWorkPool :exec
delete from work_pool where id = @id;

-- name: Beat :exec
insert into worker (work_pool_id, name, last_heartbeat, interval_seconds)
values (@work_pool_id, @name, @now, @interval_seconds)
on conflict (work_pool_id, name) do update set last_heartbeat = excluded.last_heartbeat, interval_seconds = excluded.interval_seconds;

-- name: TouchPolled :exec
update deployment set last_polled = @now where work_pool_id = @work_pool_id;

-- name: ScheduledRunsOfPool :many
select r.id from flow_run r
where r.work_pool_id = @work_pool_id and r.state_type = 'SCHEDULED'
  and (sqlc.narg(before)::timestamptz is null or r.next_start_time <= sqlc.narg(before))
  and (sqlc.narg(after)::timestamptz is null or r.next_start_time > sqlc.narg(after))
  and (cardinality(@queues::text[]) = 0 or r.work_queue_name = any(@queues))
order by r.next_start_time, r.seq limit @max;

-- name: TouchDeployments :exec
update deployment set last_polled = @now where id = any(@ids::uuid[]);

-- name: ScheduledRunsOfDeployments :many
-- Those that whoever serves the deployments carries out.
select r.id from flow_run r
where r.deployment_id = any(@deployments::uuid[]) and r.state_type = 'SCHEDULED' and r.elsewhere
  and (sqlc.narg(before)::timestamptz is null or r.next_start_time <= sqlc.narg(before))
order by r.next_start_time, r.seq limit @max;

-- name: ActiveRunsOfPool :one
select count(*) from flow_run where work_pool_id = @work_pool_id and state_type in ('PENDING', 'RUNNING', 'CANCELLING');

-- name: Workers :many
select w.name, w.last_heartbeat, w.interval_seconds,
  (w.last_heartbeat + make_interval(secs => 3 * w.interval_seconds) > @now::timestamptz)::boolean as online
from worker w where w.work_pool_id = @work_pool_id order by w.last_heartbeat desc, w.name limit @max offset @skip;
