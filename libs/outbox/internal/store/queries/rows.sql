-- name: ListPending :many
-- Each list has its condition as a constant, so that the state's partial index serves.
select id, seq, tenant, namespace, name, subject_id,
    (case when octet_length(payload::text) <= @max_shown::int then payload end)::jsonb as payload,
    octet_length(payload::text)::bigint as payload_bytes,
    encode(sha256(convert_to(payload::text, 'UTF8')), 'hex')::text as digest, actor, request_id, created_at,
    next_attempt_at, refusals, published_at, stream_seq, poison_at, last_error
from outbox
where published_at is null and poison_at is null
  and id > @after::uuid and (@tenants::text[] is null or tenant = any(@tenants::text[]))
order by id limit @max_rows;

-- name: ListPublished :many
select id, seq, tenant, namespace, name, subject_id,
    (case when octet_length(payload::text) <= @max_shown::int then payload end)::jsonb as payload,
    octet_length(payload::text)::bigint as payload_bytes,
    encode(sha256(convert_to(payload::text, 'UTF8')), 'hex')::text as digest, actor, request_id, created_at,
    next_attempt_at, refusals, published_at, stream_seq, poison_at, last_error
from outbox
where published_at is not null
  and id > @after::uuid and (@tenants::text[] is null or tenant = any(@tenants::text[]))
order by id limit @max_rows;

-- name: ListPoison :many
select id, seq, tenant, namespace, name, subject_id,
    (case when octet_length(payload::text) <= @max_shown::int then payload end)::jsonb as payload,
    octet_length(payload::text)::bigint as payload_bytes,
    encode(sha256(convert_to(payload::text, 'UTF8')), 'hex')::text as digest, actor, request_id, created_at,
    next_attempt_at, refusals, published_at, stream_seq, poison_at, last_error
from outbox
where poison_at is not null
  and id > @after::uuid and (@tenants::text[] is null or tenant = any(@tenants::text[]))
order by id limit @max_rows;

-- name: LockRow :one
select id, seq, tenant, namespace, name, subject_id,
    (case when octet_length(payload::text) <= @max_shown::int then payload end)::jsonb as payload,
    octet_length(payload::text)::bigint as payload_bytes,
    encode(sha256(convert_to(payload::text, 'UTF8')), 'hex')::text as digest, actor, request_id, created_at,
    next_attempt_at, refusals, published_at, stream_seq, poison_at, last_error
from outbox
where id = @id and (@tenants::text[] is null or tenant = any(@tenants::text[]))
for update;

-- name: ReplayRow :one
update outbox set published_at = null, stream_seq = null, poison_at = null, refusals = 0, next_attempt_at = now()
where id = @id
returning id, seq, tenant, namespace, name, subject_id,
    (case when octet_length(payload::text) <= @max_shown::int then payload end)::jsonb as payload,
    octet_length(payload::text)::bigint as payload_bytes,
    encode(sha256(convert_to(payload::text, 'UTF8')), 'hex')::text as digest, actor, request_id, created_at,
    next_attempt_at, refusals, published_at, stream_seq, poison_at, last_error;

-- name: DropPoison :one
delete from outbox where id = @id and poison_at is not null
returning id, seq, tenant, namespace, name, subject_id,
    (case when octet_length(payload::text) <= @max_shown::int then payload end)::jsonb as payload,
    octet_length(payload::text)::bigint as payload_bytes,
    encode(sha256(convert_to(payload::text, 'UTF8')), 'hex')::text as digest, actor, request_id, created_at,
    next_attempt_at, refusals, published_at, stream_seq, poison_at, last_error;

-- name: RowExists :one
select exists (select 1 from outbox where id = @id);

-- name: Republish :execrows
update outbox set published_at = null, stream_seq = null, next_attempt_at = now()
where id in (
    select o.id from outbox o
    where o.published_at is not null and o.created_at >= @created_from and o.created_at < @created_before
      and (@tenants::text[] is null or o.tenant = any(@tenants::text[])) limit @max_rows);
