-- name: InsertJob :one
-- No row where the job is known.
insert into jobs (id, scheduler, cluster, job_id, model_id, dataset, state, partition, nodes, gpus, cpus, submit_at, start_at, end_at,
    exit_code, flow_run_id, tracker_run_id, updated_at, updated_by)
values (@id, @scheduler, @cluster, @job_id, @model_id, @dataset, @state, @partition, @nodes, @gpus, @cpus, @submit_at, @start_at, @end_at,
    @exit_code, @flow_run_id, @tracker_run_id, @updated_at, @updated_by)
on conflict (scheduler, cluster, job_id) do nothing
returning *;

-- name: LockJobs :many
-- All clusters that know the id, or the one.
select * from jobs
where scheduler = @scheduler and job_id = @job_id and (sqlc.narg(cluster)::text is null or cluster = sqlc.narg(cluster))
order by cluster
limit 2
for update;

-- name: UpdateJob :one
update jobs set model_id = @model_id, dataset = @dataset, state = @state, partition = @partition, nodes = @nodes, gpus = @gpus, cpus = @cpus,
    submit_at = @submit_at, start_at = @start_at, end_at = @end_at, exit_code = @exit_code, flow_run_id = @flow_run_id,
    tracker_run_id = @tracker_run_id, updated_at = @updated_at, updated_by = @updated_by
where id = @id
returning *;

-- name: FindJob :one
select * from jobs
where job_id = @job_id
  and (sqlc.narg(scheduler)::text is null or scheduler = sqlc.narg(scheduler))
  and (sqlc.narg(cluster)::text is null or cluster = sqlc.narg(cluster))
order by submit_at desc, id desc
limit 1;

-- name: ListJobs :many
select * from jobs
where (sqlc.narg(cluster)::text is null or cluster = sqlc.narg(cluster))
  and (sqlc.narg(model_id)::text is null or model_id = sqlc.narg(model_id))
  and (sqlc.narg(states)::text[] is null or state = any(sqlc.narg(states)::text[]))
  and (sqlc.narg(before)::uuid is null or id < sqlc.narg(before))
order by id desc
limit @max_rows;

-- name: JobClusters :many
select distinct cluster from jobs order by cluster;

-- name: JobPartitions :many
select coalesce(partition, 'default')::text as name,
    count(*) filter (where state = 'RUNNING') as running,
    count(*) filter (where state in ('SUBMITTED', 'PENDING')) as queued,
    coalesce(sum(nodes) filter (where state = 'RUNNING'), 0)::bigint as nodes,
    coalesce(sum(gpus) filter (where state = 'RUNNING'), 0)::bigint as gpus
from jobs
where state in ('SUBMITTED', 'PENDING', 'RUNNING') and (sqlc.narg(cluster)::text is null or cluster = sqlc.narg(cluster))
group by 1
order by 1;
