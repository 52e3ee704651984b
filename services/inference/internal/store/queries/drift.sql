-- name: RecentSnapshots :many
select version, prediction, label, ts
from snapshots
where model = sqlc.arg(model) and alias = sqlc.arg(alias)
order by id desc
limit sqlc.arg(newest);

-- name: NewestSnapshots :many
-- place is the position of model and alias in the two lists, from 1; those without a snapshot or refused input that
-- counts for the kind have no row.
select place.n::int as place, r.id::bigint as id
from generate_subscripts(sqlc.arg(models)::text[], 1) as place(n)
left join drift_resets d
    on d.model = (sqlc.arg(models)::text[])[place.n] and d.alias = (sqlc.arg(aliases)::text[])[place.n] and d.kind = sqlc.arg(kind)
cross join lateral (
    select greatest(
        (select max(s.id) from snapshots s
         where s.model = (sqlc.arg(models)::text[])[place.n] and s.alias = (sqlc.arg(aliases)::text[])[place.n]
           and s.id > coalesce(d.after_id, 0)),
        (select max(f.id) from refused_inputs f
         where f.model = (sqlc.arg(models)::text[])[place.n] and f.alias = (sqlc.arg(aliases)::text[])[place.n])
    ) as id
) r
where r.id is not null;

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

-- name: RecentInputsOfMany :many
-- place is the position of model and alias in the two lists, from 1. Rows before the last reset of inputs do not count.
select place.n::int as place, r.version, r.norm, r.mean, r.std, r.zeros::boolean as zeros, r.ts
from generate_subscripts(sqlc.arg(models)::text[], 1) as place(n)
left join drift_resets d
    on d.model = (sqlc.arg(models)::text[])[place.n] and d.alias = (sqlc.arg(aliases)::text[])[place.n] and d.kind = 'input'
cross join lateral (
    (select s.id, s.version, s.norm, s.mean, s.std, coalesce(s.zeros, false) as zeros, s.ts
     from snapshots s
     where s.model = (sqlc.arg(models)::text[])[place.n] and s.alias = (sqlc.arg(aliases)::text[])[place.n]
       and s.id > coalesce(d.after_id, 0)
     order by s.id desc
     limit sqlc.arg(newest))
    union all
    (select f.id, f.version, 'NaN'::double precision, 'NaN'::double precision, 'NaN'::double precision, false, f.ts
     from refused_inputs f
     where f.model = (sqlc.arg(models)::text[])[place.n] and f.alias = (sqlc.arg(aliases)::text[])[place.n]
     order by f.id desc
     limit sqlc.arg(newest))
    order by id desc
    limit sqlc.arg(newest)
) r
order by place.n, r.id desc;

-- name: RecentFeatures :many
-- The newest inputs that count and have a smaller id, newest first, with those that are scalars.
(select s.id::bigint as id, s.version, s.norm, s.mean, s.std, coalesce(s.zeros, false)::boolean as zeros, s.features, s.ts
 from snapshots s
 where s.model = sqlc.arg(model) and s.alias = sqlc.arg(alias) and s.id < sqlc.arg(before)::bigint
   and s.id > coalesce((
       select d.after_id from drift_resets d
       where d.model = sqlc.arg(model) and d.alias = sqlc.arg(alias) and d.kind = 'input'
   ), 0)
 order by s.id desc
 limit sqlc.arg(newest))
union all
(select f.id, f.version, 'NaN'::double precision, 'NaN'::double precision, 'NaN'::double precision, false, null, f.ts
 from refused_inputs f
 where f.model = sqlc.arg(model) and f.alias = sqlc.arg(alias) and f.id < sqlc.arg(before)::bigint
 order by f.id desc
 limit sqlc.arg(newest))
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

-- name: DeleteRefusedInputs :execrows
delete from refused_inputs where model = sqlc.arg(model) and alias = sqlc.arg(alias);

-- name: PruneRefusedInputs :execrows
delete from refused_inputs d
where d.model = sqlc.arg(model) and d.alias = sqlc.arg(alias) and d.id <= (
    select f.id from refused_inputs f
    where f.model = sqlc.arg(model) and f.alias = sqlc.arg(alias)
    order by f.id desc
    offset sqlc.arg(keep)::int
    limit 1
);

-- name: ExpireRefusedInputs :execrows
delete from refused_inputs where ts < sqlc.arg(before);

-- name: HideSnapshots :one
-- Input drift no longer counts the snapshots there are; predictions still do.
with counted as (
    select count(*)::bigint as n, max(s.id)::bigint as newest
    from snapshots s
    where s.model = sqlc.arg(model) and s.alias = sqlc.arg(alias)
      and s.id > coalesce((
          select d.after_id from drift_resets d
          where d.model = sqlc.arg(model) and d.alias = sqlc.arg(alias) and d.kind = 'input'
      ), 0)
), marked as (
    insert into drift_resets (model, alias, kind, after_id)
    select sqlc.arg(model), sqlc.arg(alias), 'input', newest from counted where newest is not null
    on conflict (model, alias, kind) do update set after_id = greatest(drift_resets.after_id, excluded.after_id)
)
select n from counted;

-- name: Baselines :many
select model, alias, version, predictions, labels, mean, std, set_at
from drift_baselines
where kind = 'prediction';

-- name: InputBaselines :many
select model, alias, version, cardinality(predictions)::int as n, set_at
from drift_baselines
where kind = 'input';

-- name: InputBaselinesOfMany :many
-- place is the position of model and alias in the two lists, from 1.
select place.n::int as place, b.predictions as norms, b.means, b.stds, coalesce(b.zeros, 0)::int as zeros
from generate_subscripts(sqlc.arg(models)::text[], 1) as place(n)
join drift_baselines b
    on b.model = (sqlc.arg(models)::text[])[place.n] and b.alias = (sqlc.arg(aliases)::text[])[place.n] and b.kind = 'input';

-- name: InputBaseline :one
select version, predictions as norms, means, stds, coalesce(zeros, 0)::int as zeros, features, set_at
from drift_baselines
where model = sqlc.arg(model) and alias = sqlc.arg(alias) and kind = 'input';

-- name: SetBaseline :exec
insert into drift_baselines (model, alias, kind, version, predictions, labels, mean, std, means, stds, zeros, features, set_at, set_by)
values (sqlc.arg(model), sqlc.arg(alias), sqlc.arg(kind), sqlc.arg(version), sqlc.arg(predictions), sqlc.narg(labels), sqlc.narg(mean),
        sqlc.narg(std), sqlc.narg(means), sqlc.narg(stds), sqlc.narg(zeros), sqlc.narg(features), sqlc.arg(set_at), sqlc.arg(set_by))
on conflict (model, alias, kind) do update
set version = excluded.version, predictions = excluded.predictions, labels = excluded.labels, mean = excluded.mean, std = excluded.std,
    means = excluded.means, stds = excluded.stds, zeros = excluded.zeros, features = excluded.features,
    set_at = excluded.set_at, set_by = excluded.set_by;

-- name: OldBaseline :one
select cardinality(predictions)::int as n_numbers, coalesce(cardinality(labels), 0)::int as n_labels, mean, std, set_at
from drift_baselines
where model = sqlc.arg(model) and alias = sqlc.arg(alias) and kind = sqlc.arg(kind)
for update;

-- name: DriftState :one
select status, coalesce(overall, status)::text as overall from drift_states
where model = sqlc.arg(model) and alias = sqlc.arg(alias) and kind = sqlc.arg(kind)
for update;

-- name: DriftStates :many
select model, alias, status, coalesce(overall, status)::text as overall from drift_states
where kind = sqlc.arg(kind);

-- name: SetDriftState :exec
insert into drift_states (model, alias, kind, status, overall, changed_at)
values (sqlc.arg(model), sqlc.arg(alias), sqlc.arg(kind), sqlc.arg(status), sqlc.arg(overall)::text, sqlc.arg(changed_at))
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
