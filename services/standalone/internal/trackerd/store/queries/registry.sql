-- name: CreateRegisteredModel :exec
insert into registered_model (name, description, created, updated, tags)
values ($1, $2, $3, $3, $4);

-- name: RegisteredModel :one
select * from registered_model where name = $1;

-- name: LockRegisteredModel :one
select * from registered_model where name = $1 for update;

-- name: RenameRegisteredModel :exec
update registered_model set name = @new_name, updated = @updated where name = @name;

-- name: TouchVersions :exec
update model_version set updated = $2 where name = $1;

-- name: DescribeRegisteredModel :exec
update registered_model set description = $2, updated = $3 where name = $1;

-- name: SetRegisteredModelTags :exec
update registered_model set tags = $2, updated = $3 where name = $1;

-- name: DeleteRegisteredModel :execrows
delete from registered_model where name = $1;

-- NextVersion locks the model's row until the transaction ends, so that numbers
-- are given one after another.
-- name: NextVersion :one
update registered_model set last_version = last_version + 1, updated = $2 where name = $1
returning last_version;

-- name: TouchRegisteredModel :exec
update registered_model set updated = $2 where name = $1;

-- name: CreateModelVersion :one
insert into model_version (name, version, created, updated, description, source, download_uri, run_id, run_link, model_id, tags)
values (@name, @version, @now, @now, @description, @source, @download_uri, @run_id, @run_link, @model_id, @tags)
returning *;

-- name: ModelVersion :one
select * from model_version where name = $1 and version = $2;

-- name: LockModelVersion :one
select * from model_version where name = $1 and version = $2 for update;

-- name: DescribeModelVersion :exec
update model_version set description = $3, updated = $4 where name = $1 and version = $2;

-- name: SetModelVersionTags :exec
update model_version set tags = $3, updated = $4 where name = $1 and version = $2;

-- name: SetStage :exec
update model_version set stage = $3, updated = $4 where name = $1 and version = $2;

-- name: ArchiveStage :exec
update model_version set stage = 'Archived', updated = @updated
where name = @name and stage = @stage and version <> @version;

-- name: DeleteModelVersion :execrows
delete from model_version where name = $1 and version = $2;

-- name: LatestVersions :many
select distinct on (name, stage) * from model_version
where name = any(@names::text[])
order by name, stage, version desc;

-- SetAlias is one statement: readers see the old version or the new.
-- name: SetAlias :exec
insert into alias (name, alias, version) values ($1, $2, $3)
on conflict (name, alias) do update set version = excluded.version;

-- name: DeleteAlias :execrows
delete from alias where name = $1 and alias = $2;

-- name: VersionByAlias :one
select v.* from alias a join model_version v on v.name = a.name and v.version = a.version
where a.name = $1 and a.alias = $2;

-- name: Aliases :many
select * from alias where name = any(@names::text[]) order by name, alias;
