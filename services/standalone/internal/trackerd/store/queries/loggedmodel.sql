-- name: CreateLoggedModel :exec
insert into logged_model (id, experiment_id, name, status, model_type, source_run_id, artifact_uri, created, updated, tags, params)
values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10);

-- name: LoggedModel :one
select * from logged_model where id = $1 and not deleted;

-- name: LockLoggedModel :one
select * from logged_model where id = $1 and not deleted for update;

-- name: LoggedModelsExist :one
select count(*) from logged_model where id = any(@ids::text[]) and not deleted;

-- name: SetLoggedModelStatus :exec
update logged_model set status = $2, updated = $3 where id = $1;

-- name: SetLoggedModelTags :exec
update logged_model set tags = $2, updated = $3 where id = $1;

-- name: SetLoggedModelParams :exec
update logged_model set params = $2 where id = $1;

-- name: DeleteLoggedModel :exec
update logged_model set deleted = true, updated = $2 where id = $1;

-- name: LoggedModelMetrics :many
select * from logged_model_metric where model_id = any(@model_ids::text[])
order by model_id, key, run_id, dataset_name, dataset_digest;
