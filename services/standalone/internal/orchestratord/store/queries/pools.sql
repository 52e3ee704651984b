-- name: InsertWorkPool :execrows
insert into work_pool (id, created, updated, name, description, type, base_job_template, is_paused, concurrency_limit, default_queue_id)
values (@id, @now, @now, @name, @description, @type, @base_job_template, @is_paused, @concurrency_limit, @default_queue_id)
on conflict (name) do nothing;

-- name: WorkPoolByName :one
select sqlc.embed(p), coalesce((select bool_or(w.last_heartbeat + make_interval(secs => 3 * w.interval_seconds) > @now::timestamptz)
  from worker w where w.work_pool_id = p.id), false)::boolean as polled
from work_pool p where p.name = @name;

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

-- name: Workers :many
select w.name, w.last_heartbeat, w.interval_seconds,
  (w.last_heartbeat + make_interval(secs => 3 * w.interval_seconds) > @now::timestamptz)::boolean as online
from worker w where w.work_pool_id = @work_pool_id order by w.last_heartbeat desc, w.name limit @max offset @skip;
