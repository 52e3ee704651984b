-- name: InsertVersion :execrows
insert into versions (model_id, version, tenant, flow_run_id, tracker_run_id, commit_sha, is_dummy, is_generated, metrics, rungs,
    aliases_set, reported_by, request_id, traceparent, reported_at, digest, binds)
values (@model_id, @version, @tenant, @flow_run_id, @tracker_run_id, @commit_sha, @is_dummy, @is_generated, @metrics, @rungs,
    '{}', @reported_by, @request_id, @traceparent, @now, @digest, @binds)
on conflict (model_id, version) do nothing;

-- name: GetVersion :one
select * from versions where model_id = @model_id and version = @version;

-- name: VersionOfRun :one
-- The version that the run's record names: others may claim the run as theirs.
select v.* from versions v
join runs r on r.flow_run_id = v.flow_run_id and r.model_id = v.model_id and r.model_version = v.version
where r.flow_run_id = @flow_run_id::text;

-- name: UnsettledVersions :many
select * from versions where settled_at is null and reported_at < @before order by reported_at limit 20;

-- name: SettleVersion :exec
update versions set aliases_set = @aliases_set, promotion_id = @promotion_id, rungs = @rungs, settled_at = @now
where model_id = @model_id and version = @version and settled_at is null;
