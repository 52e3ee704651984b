-- name: RecentSnapshots :many
select version, prediction, label
from snapshots
where model = sqlc.arg(model) and alias = sqlc.arg(alias)
order by id desc
limit sqlc.arg(newest);

-- name: SnapshotKeys :many
-- Walks the index from one (model, alias) to the next instead of reading all rows.
with recursive keys as (
    (select s.model, s.alias from snapshots s order by s.model, s.alias limit 1)
    union all
    select n.model, n.alias
    from keys k
    cross join lateral (
        select s.model, s.alias from snapshots s
        where (s.model, s.alias) > (k.model, k.alias)
        order by s.model, s.alias
        limit 1
    ) n
)
select model::text as model, alias::text as alias from keys;

-- name: DeleteSnapshots :execrows
delete from snapshots where model = sqlc.arg(model) and alias = sqlc.arg(alias);

-- name: PruneSnapshots :execrows
delete from snapshots d
where d.model = sqlc.arg(model) and d.alias = sqlc.arg(alias) and d.id <= (
    select s.id from snapshots s
    where s.model = sqlc.arg(model) and s.alias = sqlc.arg(alias)
    order by s.id desc
    offset sqlc.arg(keep)::int
    limit 1
);

-- name: ExpireSnapshots :execrows
delete from snapshots where ts < sqlc.arg(before);

-- name: Baselines :many
select model, alias, version, predictions, labels, mean, std, set_at
from drift_baselines
where kind = 'prediction';

-- name: SetBaseline :exec
insert into drift_baselines (model, alias, kind, version, predictions, labels, mean, std, set_at, set_by)
values (sqlc.arg(model), sqlc.arg(alias), 'prediction', sqlc.arg(version), sqlc.arg(predictions), sqlc.narg(labels), sqlc.narg(mean),
        sqlc.narg(std), sqlc.arg(set_at), sqlc.arg(set_by))
on conflict (model, alias, kind) do update
set version = excluded.version, predictions = excluded.predictions, labels = excluded.labels, mean = excluded.mean, std = excluded.std,
    set_at = excluded.set_at, set_by = excluded.set_by;

-- name: OldBaseline :one
select cardinality(predictions)::int as n_numbers, coalesce(cardinality(labels), 0)::int as n_labels, mean, std, set_at
from drift_baselines
where model = sqlc.arg(model) and alias = sqlc.arg(alias) and kind = 'prediction'
for update;

-- name: DriftState :one
select status, coalesce(overall, status)::text as overall from drift_states
where model = sqlc.arg(model) and alias = sqlc.arg(alias) and kind = 'prediction'
for update;

-- name: SetDriftState :exec
insert into drift_states (model, alias, kind, status, overall, changed_at)
values (sqlc.arg(model), sqlc.arg(alias), 'prediction', sqlc.arg(status), sqlc.arg(overall)::text, sqlc.arg(changed_at))
on conflict (model, alias, kind) do update set status = excluded.status, overall = excluded.overall, changed_at = excluded.changed_at;
