-- name: InsertRun :execrows
-- A run that is already known (its command was sent twice) stays as it is.
insert into runs (flow_run_id, id, tenant, model_id, dataset_name, is_dummy, origin, approval_id, requested_by, request_id,
    commit_sha, state_type, state_name, terminal, dispatched_at, checked_at, requesters, person_unknown)
values (@flow_run_id, @id, @tenant, @model_id, @dataset_name, @is_dummy, @origin, @approval_id, @requested_by, @request_id,
    @commit_sha, 'SCHEDULED', 'Scheduled', false, @now, @now, @requesters, @person_unknown)
on conflict (flow_run_id) do nothing;

-- name: GetRun :one
select * from runs where flow_run_id = @flow_run_id;

-- name: LockRun :one
select * from runs where flow_run_id = @flow_run_id for update;

-- name: OpenRunsAfter :many
select * from runs
where not terminal and flow_run_id > @after::text
order by flow_run_id limit @max_rows;

-- name: ListRuns :many
-- A run keeps the commit that it was asked for, by which its pushers are found; its version tells the one it was trained from.
select sqlc.embed(r), v.commit_sha as trained_commit, v.is_generated, v.metrics
from runs r
left join versions v on v.model_id = r.model_id and v.version = r.model_version and v.flow_run_id = r.flow_run_id
where r.tenant = @tenant
  and (sqlc.narg(model_id)::text is null or r.model_id = sqlc.narg(model_id))
  and (sqlc.narg(state_type)::text is null or r.state_type = sqlc.narg(state_type))
  and (sqlc.narg(before)::uuid is null or r.id < sqlc.narg(before))
order by r.id desc
limit @max_rows;

-- name: UpdateRunState :exec
update runs set state_type = @state_type, state_name = @state_name, terminal = @terminal, reason = @reason,
    started_at = @started_at, ended_at = @ended_at, checked_at = @now, unknown_since = null
where flow_run_id = @flow_run_id;

-- name: TouchRuns :exec
update runs set checked_at = @now, unknown_since = null where flow_run_id = any(@ids::text[]);

-- name: MarkRunsUnknown :exec
update runs set checked_at = @now, unknown_since = coalesce(unknown_since, @now) where flow_run_id = any(@ids::text[]);

-- name: SetRunVersion :execrows
-- Once: the version that a run produced stays the first that was reported for it.
update runs set model_version = @model_version, tracker_run_id = @tracker_run_id, commit_sha = coalesce(commit_sha, @commit_sha)
where flow_run_id = @flow_run_id and model_version is null;

-- name: BindReportedVersion :exec
-- SetRunVersion for a version that was reported before its run was recorded; of several the first.
update runs set model_version = v.version, tracker_run_id = v.tracker_run_id, commit_sha = coalesce(runs.commit_sha, v.commit_sha)
from (select * from versions where versions.flow_run_id = @flow_run_id::text and versions.binds order by versions.reported_at limit 1) v
where runs.flow_run_id = @flow_run_id::text and runs.model_id = v.model_id and runs.model_version is null;

-- name: ActiveRuns :many
select distinct on (model_id) model_id, flow_run_id from runs
where not terminal and (sqlc.narg(tenant)::text is null or tenant = sqlc.narg(tenant)) order by model_id, id desc;
