-- name: ListFreshness :many
select * from freshness where owned_by(model_id, @tenant::text) order by model_id;

-- name: GetFreshness :one
select * from freshness where model_id = @model_id;

-- name: LockFreshness :one
select * from freshness where model_id = @model_id for update;

-- name: MarkRetrainTriggered :exec
insert into freshness (model_id, status, retrain_triggered_at, updated_at) values (@model_id, 'unknown', @now, @now)
on conflict (model_id) do update set retrain_triggered_at = @now, updated_at = @now;

-- name: PutFreshness :exec
insert into freshness (model_id, status, latest_modelrepo_commit, last_retrain_commit, stale_since, updated_at)
values (@model_id, @status, @latest_modelrepo_commit, @last_retrain_commit, @stale_since, @now)
on conflict (model_id) do update set status = @status, latest_modelrepo_commit = @latest_modelrepo_commit,
    last_retrain_commit = @last_retrain_commit, stale_since = @stale_since, updated_at = @now;

-- name: PushedFreshness :exec
-- A new head moves the models to the status; stale_since stays what it was once set.
insert into freshness (model_id, status, latest_modelrepo_commit, stale_since, updated_at)
select m.id, @status, @commit_sha, case when @status = 'stale' then @now::timestamptz end, @now from unnest(@models::text[]) m (id)
on conflict (model_id) do update set status = @status, latest_modelrepo_commit = @commit_sha,
    stale_since = case when @status = 'stale' then coalesce(freshness.stale_since, @now) end, updated_at = @now;

-- name: TrainedLater :one
-- Whether the model has a version of that commit that is newer than the given one.
select exists (
    select 1 from versions where model_id = @model_id and commit_sha = @commit_sha::text and not is_dummy
        and version::bigint > (@newer_than::text)::bigint
);
