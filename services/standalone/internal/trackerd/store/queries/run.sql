-- name: CreateRun :exec
insert into run (id, experiment_id, name, user_id, status, start_time, artifact_uri, tags)
values ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: Run :one
select * from run where id = $1;

-- name: LockRun :one
select * from run where id = $1 for update;

-- name: UpdateRun :exec
update run set name = $2, status = $3, end_time = $4, tags = $5 where id = $1;

-- name: SetRunTags :exec
update run set tags = $2, name = $3 where id = $1;

-- name: SetRunParams :exec
update run set params = $2 where id = $1;

-- name: SetRunStage :exec
update run set stage = $2, deleted_at = $3 where id = $1;

-- name: AddMetrics :exec
insert into metric (run_id, key, timestamp, step, value)
select @run_id::text, unnest(@keys::text[]), unnest(@timestamps::bigint[]), unnest(@steps::bigint[]), unnest(@vals::double precision[])
on conflict do nothing;

-- AddLatest takes the newest of each key; a key must not come twice.
-- name: AddLatest :exec
insert into metric_latest as l (run_id, key, timestamp, step, value)
select @run_id::text, unnest(@keys::text[]), unnest(@timestamps::bigint[]), unnest(@steps::bigint[]), unnest(@vals::double precision[])
on conflict (run_id, key) do update
set timestamp = excluded.timestamp, step = excluded.step, value = excluded.value
where (excluded.step, excluded.timestamp, excluded.value) > (l.step, l.timestamp, l.value);

-- name: AddModelMetric :exec
insert into logged_model_metric as l (model_id, run_id, key, dataset_name, dataset_digest, timestamp, step, value)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (model_id, key, run_id, dataset_name, dataset_digest) do update
set timestamp = excluded.timestamp, step = excluded.step, value = excluded.value
where (excluded.step, excluded.timestamp, excluded.value) > (l.step, l.timestamp, l.value);

-- name: LatestMetrics :many
select * from metric_latest where run_id = any(@run_ids::text[]) order by run_id, key;

-- name: MetricHistory :many
select * from metric where run_id = $1 and key = $2
order by timestamp, step, value limit $3 offset $4;

-- name: AddDataset :exec
insert into run_dataset (run_id, name, digest, source_type, source, schema, profile, tags)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (run_id, name, digest) do update set tags = run_dataset.tags || excluded.tags;

-- name: Datasets :many
select * from run_dataset where run_id = any(@run_ids::text[]) order by run_id, seq;

-- name: AddRunModel :exec
insert into run_model (run_id, output, model_id, step) values ($1, $2, $3, $4) on conflict do nothing;

-- name: RunModels :many
select * from run_model where run_id = any(@run_ids::text[]) order by run_id, seq;
