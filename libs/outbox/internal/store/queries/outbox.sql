-- name: InsertEvents :exec
-- Empty optional texts become null; the arrays are of equal length and their order is kept.
insert into outbox (id, tenant, namespace, name, subject_id, payload, actor, request_id, traceparent)
select e.id, e.tenant, e.namespace, e.name, nullif(e.subject_id, ''), e.payload::jsonb, e.actor,
       nullif(e.request_id, ''), nullif(e.traceparent, '')
from (select unnest(@ids::uuid[]) as id, unnest(@tenants::text[]) as tenant, unnest(@namespaces::text[]) as namespace,
             unnest(@names::text[]) as name, unnest(@subject_ids::text[]) as subject_id, unnest(@payloads::text[]) as payload,
             unnest(@actors::text[]) as actor, unnest(@request_ids::text[]) as request_id,
             unnest(@traceparents::text[]) as traceparent, generate_subscripts(@ids::uuid[], 1) as n) e
order by e.n;

-- name: ClaimDue :many
-- Only the relay that holds the lock claims: it takes over what a former relay has claimed. The
-- rows after one that somebody else has locked wait for it, since they must not overtake it.
with pending as (
    select p.id, p.seq from outbox p
    where p.published_at is null and p.poison_at is null and p.next_attempt_at <= now()
      and (p.claimed_by is distinct from @relay::uuid or p.claimed_until is null or p.claimed_until <= now())
    order by p.seq limit @max_rows
), due as (
    select d.id, d.seq from outbox d
    where d.published_at is null and d.poison_at is null and d.next_attempt_at <= now()
      and (d.claimed_by is distinct from @relay::uuid or d.claimed_until is null or d.claimed_until <= now())
    order by d.seq limit @max_rows for update skip locked
), locked as materialized (
    select min(l.seq) as seq from (select p.seq from pending p except select due.seq from due) l
), claimed as (
    update outbox o set claimed_by = @relay::uuid, claimed_until = now() + make_interval(secs => @lease_seconds::float8)
    from due, locked where o.id = due.id and (locked.seq is null or due.seq < locked.seq)
    returning o.id, o.seq, o.tenant, o.namespace, o.name, o.subject_id, o.payload, o.actor, o.request_id,
              o.traceparent, o.created_at
)
select id, tenant, namespace, name, coalesce(subject_id, '')::text as subject_id, payload, actor,
       coalesce(request_id, '')::text as request_id, coalesce(traceparent, '')::text as traceparent, created_at
from claimed order by seq;

-- name: IsAnyDue :one
select exists (select from outbox o
    where o.published_at is null and o.poison_at is null and o.next_attempt_at <= now()
      and (o.claimed_by is distinct from @relay::uuid or o.claimed_until is null or o.claimed_until <= now()));

-- name: MarkPublished :exec
-- A stream_seq of 0 means that the event was logged and is in no stream.
update outbox o set published_at = now(), stream_seq = nullif(a.stream_seq, 0), claimed_by = null, claimed_until = null,
       poison_at = null, last_error = null
from (select unnest(@ids::uuid[]) as id, unnest(@stream_seqs::bigint[]) as stream_seq) a where o.id = a.id;

-- name: MarkRefused :many
update outbox o set refusals = o.refusals + 1, claimed_by = null, claimed_until = null, last_error = r.error,
       next_attempt_at = now() + make_interval(secs => power(2, o.refusals + 1)),
       poison_at = case when o.refusals + 1 >= @max_attempts::int then now() end
from (select unnest(@ids::uuid[]) as id, unnest(@errors::text[]) as error) r
where o.id = r.id and o.published_at is null
returning o.id, o.namespace, o.name, o.refusals, (o.poison_at is not null)::bool as poison, r.error::text as error;

-- name: ReleaseClaims :exec
update outbox set claimed_by = null, claimed_until = null
where id = any(@ids::uuid[]) and claimed_by = @relay::uuid and published_at is null;

-- name: ReleaseAllClaims :exec
update outbox set claimed_by = null, claimed_until = null
where claimed_until is not null and published_at is null and poison_at is null;

-- name: SweepPublished :execrows
-- In the order of the stream, so that the index ends the search at the first row that is too young.
delete from outbox where id in (
    select oldest.id from (
        select o.id, o.published_at from outbox o where o.published_at is not null order by o.stream_seq limit @max_rows
    ) oldest where oldest.published_at < now() - make_interval(secs => @retention_seconds::float8));

-- name: SweepLogged :execrows
-- Rows that were only logged have no place in a stream.
delete from outbox where id in (
    select o.id from outbox o where o.published_at is not null and o.stream_seq is null
      and o.published_at < now() - make_interval(secs => @retention_seconds::float8) limit @max_rows);

-- name: CountUnpublished :one
-- One condition for each count, so that its partial index serves; the week of published rows is not read.
select (select count(*) from outbox where published_at is null and poison_at is null) as pending,
       (select count(*) from outbox where poison_at is not null) as poison,
       coalesce(extract(epoch from now() - (
         select created_at from outbox where published_at is null and poison_at is null order by seq limit 1)), 0)::float8 as oldest_seconds;

-- name: CountPublished :one
select count(*) from outbox where published_at is not null;

-- name: TryRelayLock :one
select pg_try_advisory_lock(hashtextextended(@lock_name::text, 0));
