-- name: FenceAuditWriter :execrows
insert into audit_writers as w (coordinator, fence) values (@coordinator, @fence)
on conflict (coordinator) do update set fence = excluded.fence where w.fence <= excluded.fence;

-- name: KnownAuditEvents :many
select event_id from audit_events where event_id = any(@ids::uuid[]);

-- name: LockAuditHeads :many
select * from audit_heads where tenant = any(@tenants::text[]) order by tenant for update;

-- name: AuditTails :many
-- The last entry there is of each chain, whatever its head says.
select t.tenant::text as tenant,
    coalesce((select e.seq from audit_events e where e.tenant = t.tenant order by e.seq desc limit 1), 0)::bigint as seq
from unnest(@tenants::text[]) as t (tenant);

-- name: AppendAuditEvents :copyfrom
insert into audit_events (tenant, seq, event_id, ts, source, actor, action, target, outcome, request_id, details, prev_hash, hash, mac)
values (@tenant, @seq, @event_id, @ts, @source, @actor, @action, @target, @outcome, @request_id, @details, @prev_hash, @hash, @mac);

-- name: PutAuditHead :exec
insert into audit_heads (tenant, seq, hash, updated_at) values (@tenant, @seq, @hash, @now)
on conflict (tenant) do update set seq = excluded.seq, hash = excluded.hash, updated_at = excluded.updated_at;

-- name: ListAuditEvents :many
select * from audit_events
where tenant = @tenant
    and (sqlc.narg(before)::bigint is null or seq < sqlc.narg(before))
    and (sqlc.narg(model)::text is null or target = 'model:' || sqlc.narg(model))
    and (sqlc.narg(action)::text is null or action = sqlc.narg(action))
    and (sqlc.narg(source)::text is null or source = sqlc.narg(source))
    and (sqlc.narg(actor)::text is null or actor = sqlc.narg(actor))
    and (sqlc.narg(since)::timestamptz is null or ts >= sqlc.narg(since))
    and (sqlc.narg(until)::timestamptz is null or ts < sqlc.narg(until))
order by seq desc
limit @max_rows;

-- name: CountAuditEvents :one
select count(*) from audit_events
where tenant = @tenant
    and (sqlc.narg(model)::text is null or target = 'model:' || sqlc.narg(model))
    and (sqlc.narg(action)::text is null or action = sqlc.narg(action))
    and (sqlc.narg(source)::text is null or source = sqlc.narg(source))
    and (sqlc.narg(actor)::text is null or actor = sqlc.narg(actor))
    and (sqlc.narg(since)::timestamptz is null or ts >= sqlc.narg(since))
    and (sqlc.narg(until)::timestamptz is null or ts < sqlc.narg(until));

-- name: SearchAuditEvents :many
-- A search is a query of its own, and its matches are found first: an optional condition, or the order, would let the
-- planner compute the words of every entry instead of using their index, which takes seconds.
with found as materialized (
    select f.tenant, f.seq from audit_events f
    where f.tenant = @tenant
        and audit_words(f.seq, f.event_id, f.source, f.actor, f.action, f.target, f.outcome, f.request_id, f.details) @@ audit_query(@words)
)
select e.* from audit_events e join found using (tenant, seq)
where (sqlc.narg(model)::text is null or e.target = 'model:' || sqlc.narg(model))
    and (sqlc.narg(action)::text is null or e.action = sqlc.narg(action))
    and (sqlc.narg(source)::text is null or e.source = sqlc.narg(source))
    and (sqlc.narg(actor)::text is null or e.actor = sqlc.narg(actor))
    and (sqlc.narg(since)::timestamptz is null or e.ts >= sqlc.narg(since))
    and (sqlc.narg(until)::timestamptz is null or e.ts < sqlc.narg(until))
    and (sqlc.narg(before)::bigint is null or e.seq < sqlc.narg(before))
order by e.seq desc
limit @max_rows;

-- name: CountFoundAuditEvents :one
with found as materialized (
    select f.tenant, f.seq from audit_events f
    where f.tenant = @tenant
        and audit_words(f.seq, f.event_id, f.source, f.actor, f.action, f.target, f.outcome, f.request_id, f.details) @@ audit_query(@words)
)
select count(*) from audit_events e join found using (tenant, seq)
where (sqlc.narg(model)::text is null or e.target = 'model:' || sqlc.narg(model))
    and (sqlc.narg(action)::text is null or e.action = sqlc.narg(action))
    and (sqlc.narg(source)::text is null or e.source = sqlc.narg(source))
    and (sqlc.narg(actor)::text is null or e.actor = sqlc.narg(actor))
    and (sqlc.narg(since)::timestamptz is null or e.ts >= sqlc.narg(since))
    and (sqlc.narg(until)::timestamptz is null or e.ts < sqlc.narg(until));

-- name: AuditPage :many
select * from audit_events where tenant = @tenant and seq > @after and seq <= @until_seq order by seq limit @max_rows;

-- name: AuditEntry :one
select * from audit_events where tenant = @tenant and seq = @seq;

-- name: AuditEnd :one
-- Where the chain ends by its head and by its entries, of one instant.
select coalesce((select h.seq from audit_heads h where h.tenant = @tenant), 0)::bigint as head_seq,
    coalesce((select h.hash from audit_heads h where h.tenant = @tenant), '')::text as head_hash,
    coalesce((select max(e.seq) from audit_events e where e.tenant = @tenant), 0)::bigint as last_seq,
    coalesce((select max(c.seq) from audit_checkpoints c where c.tenant = @tenant), 0)::bigint as checkpoint_seq,
    coalesce((select v.head_seq from audit_verdicts v where v.tenant = @tenant), 0)::bigint as verified_seq;

-- name: AuditSpan :one
-- The entries between the first that is not before since and the last that is before until.
select coalesce(min(seq), 0)::bigint as first_seq, coalesce(max(seq), 0)::bigint as last_seq from audit_events
where tenant = @tenant
    and (sqlc.narg(since)::timestamptz is null or ts >= sqlc.narg(since))
    and (sqlc.narg(until)::timestamptz is null or ts < sqlc.narg(until));

-- name: AuditTenants :many
-- Also those of whom only a part is left.
select tenant from audit_heads union select tenant from audit_checkpoints union select tenant from audit_verdicts
union select tenant from audit_memory union select tenant from audit_events order by tenant;

-- name: AuditHeadsToSign :many
-- Chains that have grown since their last checkpoint, where that is not newer than before.
select h.tenant from audit_heads h
left join lateral (select k.seq, k.ts from audit_checkpoints k where k.tenant = h.tenant order by k.seq desc limit 1) c on true
where c.seq is null or h.seq > c.seq and c.ts <= @before::timestamptz
order by h.tenant;

-- name: LastAuditCheckpoints :many
-- The last one of each chain.
select c.* from audit_checkpoints c
where (c.tenant, c.seq) in (select h.tenant, (select max(k.seq) from audit_checkpoints k where k.tenant = h.tenant) from audit_heads h)
order by c.tenant;

-- name: LockAuditHead :one
select * from audit_heads where tenant = @tenant for update;

-- name: PutAuditCheckpoint :execrows
insert into audit_checkpoints (tenant, seq, hash, ts, key_id, signature)
values (@tenant, @seq, @hash, @ts, @key_id, @signature) on conflict do nothing;

-- name: AuditCheckpoint :one
select * from audit_checkpoints where tenant = @tenant and seq = @seq;

-- name: ListAuditCheckpoints :many
select * from audit_checkpoints
where tenant = @tenant and (sqlc.narg(before)::bigint is null or seq < sqlc.narg(before))
order by seq desc
limit @max_rows;

-- name: AuditCheckpointsIn :many
select * from audit_checkpoints where tenant = @tenant and seq > @after and seq <= @until_seq order by seq limit @max_rows;

-- name: PutAuditKey :exec
insert into audit_keys (key_id, public_key, created_at) values (@key_id, @public_key, @now) on conflict do nothing;

-- name: ListAuditKeys :many
select * from audit_keys order by created_at desc, key_id;

-- name: PutAuditVouch :exec
insert into audit_vouches (key_id, vouched_by, signature) values (@key_id, @vouched_by, @signature) on conflict do nothing;

-- name: ListAuditVouches :many
select * from audit_vouches order by key_id, vouched_by;

-- name: PutAuditVerdict :exec
insert into audit_verdicts (tenant, verified, checked, head_seq, head_hash, first_bad_seq, reason, verified_at)
values (@tenant, @verified, @checked, @head_seq, @head_hash, @first_bad_seq, @reason, @verified_at)
on conflict (tenant) do update set verified = excluded.verified, checked = excluded.checked, head_seq = excluded.head_seq,
    head_hash = excluded.head_hash, first_bad_seq = excluded.first_bad_seq, reason = excluded.reason, verified_at = excluded.verified_at;

-- name: AuditVerified :one
-- Whether all chains held when last verified; no row before that.
select r.verified_at, coalesce((select bool_and(v.verified) from audit_verdicts v), true)::boolean as verified from audit_rounds r;

-- name: PutAuditRound :exec
insert into audit_rounds (verified_at) values (@verified_at)
on conflict (one) do update set verified_at = excluded.verified_at;

-- name: PutAuditEpoch :exec
insert into audit_epochs (tenant, from_seq, ts, key_id, signature)
values (@tenant, @from_seq, @ts, @key_id, @signature) on conflict do nothing;

-- name: ListAuditEpochs :many
select * from audit_epochs where tenant = any(@tenants::text[]) order by tenant, from_seq, ts;

-- name: AuditMemory :one
select document from audit_memory where tenant = @tenant;

-- name: PutAuditMemory :exec
insert into audit_memory (tenant, document, updated_at) values (@tenant, @document, @now)
on conflict (tenant) do update set document = excluded.document, updated_at = excluded.updated_at;

-- name: LockAuditWriters :many
-- Nothing is appended to any chain until the transaction ends: who appends raises the fence first.
select fence from audit_writers order by coordinator for update;
