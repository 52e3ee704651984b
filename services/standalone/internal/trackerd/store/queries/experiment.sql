-- name: NextExperimentID :one
select nextval(pg_get_serial_sequence('experiment', 'id'))::bigint;

-- name: CreateExperiment :exec
insert into experiment (id, name, artifact_location, created, updated, tags)
values (@id, @name, @artifact_location, @now, @now, @tags);

-- name: Experiment :one
select * from experiment where id = $1;

-- name: ExperimentByName :one
select * from experiment where name = $1;

-- name: LockExperiment :one
select * from experiment where id = $1 for update;

-- name: ShareExperiment :one
select * from experiment where id = $1 for share;

-- name: RenameExperiment :exec
update experiment set name = $2, updated = $3 where id = $1;

-- name: SetExperimentStage :exec
update experiment set stage = $2, updated = $3 where id = $1;

-- name: SetExperimentTags :exec
update experiment set tags = $2, updated = $3 where id = $1;

-- name: DeleteRunsOf :exec
update run set stage = 'deleted', deleted_at = @deleted_at::bigint where experiment_id = @experiment_id and stage = 'active';

-- name: RestoreRunsOf :exec
update run set stage = 'active', deleted_at = null where experiment_id = @experiment_id and stage = 'deleted' and deleted_at = @deleted_at::bigint;
