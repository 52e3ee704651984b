-- name: UsePassedTrial :one
update model_trials set used_at = sqlc.arg(used_at)
where digest = sqlc.arg(digest) and conditions = sqlc.arg(conditions)
returning rows, length;

-- name: SetPassedTrial :exec
insert into model_trials (digest, conditions, rows, length, used_at)
values (sqlc.arg(digest), sqlc.arg(conditions), sqlc.arg(rows), sqlc.arg(length), sqlc.arg(used_at))
on conflict (digest) do update set conditions = excluded.conditions, rows = excluded.rows, length = excluded.length, used_at = excluded.used_at;

-- name: DeleteOldTrials :exec
delete from model_trials where used_at < sqlc.arg(before);
