-- name: RecentSnapshots :many
select version, prediction, label, ts
from snapshots
where model = sqlc.arg(model) and alias = sqlc.arg(alias)
order by id desc
limit sqlc.arg(newest);

-- name: NewestSnapshots :many
-- place is the position of model and alias in the two lists, from 1; those without a snapshot have no row.
select place.n::int as place, r.id::bigint as id
from generate_subscripts(sqlc.arg(models)::text[], 1) as place(n)
cross join lateral (
    select s.id
    from snapshots s
    where s.model = (sqlc.arg(models)::text[])[place.n] and s.alias = (sqlc.arg(aliases)::text[])[place.n]
    order by s.id desc
    limit 1
) r;

-- name: RecentSnapshotsOfMany :many
-- place is the position of model and alias in the two lists, from 1.
select place.n::int as place, r.version, r.prediction, r.label, r.ts
from generate_subscripts(sqlc.arg(models)::text[], 1) as place(n)
cross join lateral (
    select s.id, s.version, s.prediction, s.label, s.ts
    from snapshots s
    where s.model = (sqlc.arg(models)::text[])[place.n] and s.alias = (sqlc.arg(aliases)::text[])[place.n]
    order by s.id desc
    limit sqlc.arg(newest)
) r
order by place.n, r.id desc;

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

-- name: DriftStates :many
select model, alias, status, coalesce(overall, status)::text as overall from drift_states
where kind = 'prediction';

-- name: SetDriftState :exec
insert into drift_states (model, alias, kind, status, overall, changed_at)
values (sqlc.arg(model), sqlc.arg(alias), 'prediction', sqlc.arg(status), sqlc.arg(overall)::text, sqlc.arg(changed_at))
on conflict (model, alias, kind) do update set status = excluded.status, overall = excluded.overall, changed_at = excluded.changed_at;

-- name: SnapshotSeries :many
-- Steps without a snapshot have no row; labels have no mean.
select floor(extract(epoch from ts - sqlc.arg(from_time)::timestamptz) / sqlc.arg(step_seconds)::float8)::int as step,
       count(*)::bigint as n,
       coalesce(sum(prediction), 0)::float8 as total,
       count(prediction)::bigint as numbers
from snapshots
where model = sqlc.arg(model) and alias = sqlc.arg(alias)
  and ts >= sqlc.arg(from_time) and ts < sqlc.arg(to_time)
group by 1
order by 1;

-- name: LatencySeries :many
-- Steps without a snapshot that knows its time have no row.
select floor(extract(epoch from ts - sqlc.arg(from_time)::timestamptz) / sqlc.arg(step_seconds)::float8)::int as step,
       percentile_cont(0.95) within group (order by seconds)::float8 as p95_seconds
from snapshots
where model = sqlc.arg(model) and alias = sqlc.arg(alias)
  and ts >= sqlc.arg(from_time) and ts < sqlc.arg(to_time) and seconds is not null
group by 1
order by 1;

-- name: OldestSnapshot :one
select ts from snapshots where model = sqlc.arg(model) and alias = sqlc.arg(alias) order by id limit 1;

-- name: BaselineMoments :one
select mean, std from drift_baselines
where model = sqlc.arg(model) and alias = sqlc.arg(alias) and kind = 'prediction';
