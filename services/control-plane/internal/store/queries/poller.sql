-- name: GetPoller :one
-- The ages are by the database's clock, which all replicas share; -1 before the first.
select *, coalesce(extract(epoch from clock_timestamp() - last_ok_at), -1)::float8 as ok_age_seconds,
    coalesce(extract(epoch from clock_timestamp() - checked_at), -1)::float8 as checked_age_seconds
from poller where id = 1;

-- name: PollSucceeded :exec
update poller set source = @source, branch = @branch, head_commit = @head_commit, force_commit = @force_commit, fault = @fault,
    last_ok_at = clock_timestamp(), checked_at = clock_timestamp(), last_error = null, readings = readings + @reread::bigint, updated_at = clock_timestamp()
where id = 1;

-- name: PollFailed :exec
update poller set last_error = @last_error, checked_at = clock_timestamp(), updated_at = clock_timestamp() where id = 1;

-- name: RereadModelrepo :one
update poller set readings = readings + 1, updated_at = clock_timestamp() where id = 1 returning readings;

-- name: NudgePoller :exec
update poller set nudges = nudges + 1, updated_at = clock_timestamp() where id = 1;

-- name: LastPushOf :one
select commit_sha from pushes where branch = @branch order by id desc limit 1;

-- name: LastTrainedCommit :one
select last_retrain_commit from freshness where model_id = @model_id;
