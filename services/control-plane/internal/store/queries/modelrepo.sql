-- name: InitModelrepoConfig :execrows
insert into modelrepo_config (id, auto_retrain, poll_interval_seconds, watch_branch, stale_scope, gate, updated_at, updated_by)
values (1, @auto_retrain, @poll_interval_seconds, @watch_branch, @stale_scope, @gate, @now, @updated_by)
on conflict (id) do nothing;

-- name: GetModelrepoConfig :one
select * from modelrepo_config where id = 1;

-- name: LockModelrepoConfig :one
select * from modelrepo_config where id = 1 for update;

-- name: PutModelrepoConfig :exec
update modelrepo_config set auto_retrain = @auto_retrain, poll_interval_seconds = @poll_interval_seconds,
    watch_branch = @watch_branch, stale_scope = @stale_scope, gate = @gate, updated_at = @now, updated_by = @updated_by
where id = 1;

-- name: FindDelivery :one
select push_id from push_deliveries where delivery_id = @delivery_id;

-- name: InsertDelivery :exec
insert into push_deliveries (delivery_id, push_id, received_at) values (@delivery_id, @push_id, @now);

-- name: DeleteOldDeliveries :execrows
delete from push_deliveries where received_at < @before;

-- name: LastPush :one
select * from pushes order by id desc limit 1;

-- name: InsertPush :one
insert into pushes (commit_sha, branch, pushed_by, source, delivery_id, touched, touched_all, dispatch, trigger_ci, work_until, received_at, requesters, person_unknown)
values (@commit_sha, @branch, @pushed_by, @source, @delivery_id, @touched, @touched_all, @dispatch, @trigger_ci, @work_until, @now, @requesters, @person_unknown)
returning *;

-- name: JoinPush :one
-- The known head was told of again: who did so counts as having asked too.
update pushes set requesters = @requesters, person_unknown = person_unknown or @person_unknown where id = @id
returning *;

-- name: LockPush :one
select * from pushes where commit_sha = @commit_sha and branch = @branch for update;

-- name: MovePush :exec
-- The record of a commit gives way to a newer one, to which its deliveries belong from then on.
with moved as (
    update push_deliveries set push_id = @to_id where push_id = @from_id
)
delete from pushes where id = @from_id;

-- name: RetirePush :exec
-- Out of the way of a newer record of the same commit, within one transaction.
update pushes set branch = branch || ' (replaced)' where id = @id;

-- name: DeleteOldPushes :execrows
-- Never the head, nor what still says who asked for a training or may not approve its result: a push that a stale model was
-- not trained from yet, or a commit that a model, a version or a run names.
delete from pushes p
where p.received_at < @before and p.work_until is null and p.id < (select max(id) from pushes)
  and not exists (select 1 from push_deliveries d where d.push_id = p.id)
  and not exists (select 1 from freshness f where f.last_retrain_commit = p.commit_sha)
  and not exists (select 1 from versions v where v.commit_sha = p.commit_sha)
  and not exists (select 1 from runs r where r.commit_sha = p.commit_sha)
  and not exists (
    select 1 from freshness f
    where f.status = 'stale' and (p.touched_all or f.model_id = any(p.touched))
      and p.id > coalesce((select max(c.id) from pushes c where c.commit_sha = f.last_retrain_commit), 0));

-- name: ListPushes :many
-- Those that touched a model of the tenant; the tenant default has the repository, and so all of them that touched no
-- other tenant's model alone.
select * from pushes p
where (sqlc.narg('before')::bigint is null or p.id < sqlc.narg('before')::bigint)
  and (@tenant::text = 'platform' or exists (select 1 from model_owners o where o.tenant = @tenant::text and (p.touched_all or o.model_id = any(p.touched)))
    or @tenant::text = 'default' and not exists (select 1 from model_owners o where o.tenant <> 'default' and o.model_id = any(p.touched)))
order by p.id desc limit @max_rows;

-- name: TouchedSince :one
-- Whether a push later than the newest one of a commit touched the model; a commit that no push
-- told of counts as older than all of them.
select exists (
    select 1 from pushes where (touched_all or @model_id::text = any(touched))
        and id > coalesce((select max(c.id) from pushes c where c.commit_sha = @commit_sha), 0)
);

-- name: TouchedAfter :many
-- Those of the models that a push later than this one touched.
select m::text from unnest(@models::text[]) m where exists (
    select 1 from pushes where id > @id and (touched_all or m = any(touched))
);

-- name: ClaimPushWork :one
update pushes set work_until = @until where id = (
    select due.id from pushes due where due.work_until < @now order by due.id limit 1 for update skip locked
) returning *;

-- name: KeepPushWork :exec
-- What is left of the work, and until when nobody else takes it; null when it is done.
update pushes set dispatch = @dispatch, trigger_ci = @trigger_ci, work_until = @work_until where id = @id;

-- name: LockFreshnessOf :many
select * from freshness where model_id = any(@models::text[]) order by model_id for update;

-- name: TrainedFrom :many
select model_id from freshness where last_retrain_commit = @commit_sha and model_id = any(@models::text[]);

-- name: PushersSince :one
-- Who pushed what the model was not trained from yet; unknown is true where one of them is nobody known.
select coalesce((select array_agg(distinct r) from pushes p, unnest(p.requesters) r where p.id = any(due.ids)), '{}')::text[] as requesters,
    coalesce((select bool_or(p.person_unknown) from pushes p where p.id = any(due.ids)), false)::boolean as person_unknown
from (
    select array_agg(p.id) as ids from pushes p
    where (p.touched_all or @model_id::text = any(p.touched)) and p.id > coalesce((
        select max(c.id) from pushes c join freshness f on f.last_retrain_commit = c.commit_sha where f.model_id = @model_id::text), 0)
) due;

-- name: PushersOf :one
-- Who pushed a commit; unknown is false for one that no push told of.
select coalesce((select array_agg(distinct r) from pushes p, unnest(p.requesters) r where p.commit_sha = @commit_sha::text), '{}')::text[] as requesters,
    coalesce((select bool_or(p.person_unknown) from pushes p where p.commit_sha = @commit_sha::text), false)::boolean as person_unknown;
