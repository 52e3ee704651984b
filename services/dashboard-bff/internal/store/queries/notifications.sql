-- name: ListChannels :many
select c.id, c.name, c.kind, c.events, c.enabled, c.host, c.recipients, c.created_by, c.created_at, c.updated_at,
    c.succeeded_at, c.failed_at, c.last_error,
    count(d.id) filter (where d.delivered_at is null and d.abandoned_at is null) as waiting,
    count(d.id) filter (where d.abandoned_at is not null) as abandoned
from notification_channels c left join notification_deliveries d on d.channel_id = c.id and d.tenant = c.tenant
where c.tenant = @tenant and (sqlc.narg(id)::uuid is null or c.id = sqlc.narg(id))
group by c.id order by c.name, c.id;

-- name: LockChannels :exec
-- One change of a tenant's channels at a time, so that their number is limited.
select pg_advisory_xact_lock(hashtextextended('dashboard.channels.' || @tenant::text, 0));

-- name: InsertChannel :exec
insert into notification_channels (id, tenant, name, kind, events, enabled, host, recipients, sealed, created_by)
values (@id, @tenant, @name, @kind, @events, @enabled, @host, @recipients, @sealed, @created_by);

-- name: UpdateChannel :exec
-- Another address has had no success and no error.
update notification_channels set name = @name, events = @events, enabled = @enabled, host = @host, recipients = @recipients,
    succeeded_at = case when sealed = @sealed and recipients = @recipients then succeeded_at end,
    failed_at = case when sealed = @sealed and recipients = @recipients then failed_at end,
    last_error = case when sealed = @sealed and recipients = @recipients then last_error end,
    sealed = @sealed, updated_at = now()
where tenant = @tenant and id = @id;

-- name: DeleteChannel :exec
delete from notification_channels where tenant = @tenant and id = @id;

-- name: GetChannel :one
select id, tenant, name, kind, events, enabled, host, recipients, sealed from notification_channels
where tenant = @tenant and id = @id;

-- name: EnqueueDeliveries :execrows
-- One row per channel that wants the event; a fact of the platform goes to the channels of every tenant.
insert into notification_deliveries (tenant, channel_id, event_id, message)
select c.tenant, c.id, @event_id, @message from notification_channels c
where (c.tenant = @tenant or @tenant = 'platform') and c.enabled and @event::text = any(c.events)
on conflict (channel_id, event_id) do nothing;

-- name: ClaimChannels :many
-- Channels with something due, of all tenants: the sender serves every channel. A channel whose claim has run out was
-- left by a process that died.
update notification_channels c set claimed_until = now() + make_interval(secs => @lease_seconds::float8)
where c.id in (
    select f.id from notification_channels f
    where f.enabled and (f.claimed_until is null or f.claimed_until < now())
      and exists (select from notification_deliveries d where d.channel_id = f.id and d.delivered_at is null and d.abandoned_at is null
          and d.next_attempt_at <= now())
    order by f.claimed_until nulls first, f.id limit @max_rows for update skip locked)
returning c.id, c.tenant, c.name, c.kind, c.recipients, c.sealed;

-- name: NextDelivery :one
select id, message, attempts, created_at from notification_deliveries
where tenant = @tenant and channel_id = @channel_id and delivered_at is null and abandoned_at is null and next_attempt_at <= now()
order by next_attempt_at, created_at, id limit 1;

-- name: MarkDelivered :exec
update notification_deliveries set delivered_at = now(), attempts = attempts + 1 where tenant = @tenant and id = @id;

-- name: MarkFailed :exec
-- Abandoned once it has waited for a day: news of yesterday helps nobody, and a channel that is away stays bounded.
update notification_deliveries set attempts = attempts + 1, next_attempt_at = now() + make_interval(secs => @wait_seconds::float8),
    abandoned_at = case when created_at < now() - interval '1 day' then now() end
where tenant = @tenant and id = @id;

-- name: RecordSuccess :exec
update notification_channels set succeeded_at = now() where tenant = @tenant and id = @id;

-- name: RecordError :exec
update notification_channels set failed_at = now(), last_error = @last_error where tenant = @tenant and id = @id;

-- name: ReleaseChannel :exec
update notification_channels set claimed_until = now() - interval '1 microsecond' where tenant = @tenant and id = @id;

-- name: ForgetDeliveries :exec
-- Of all tenants. An event leaves the stream after a week, so no repeat of it finds its row gone.
delete from notification_deliveries where coalesce(delivered_at, abandoned_at) < now() - interval '30 days';

-- name: ListSealedChannels :many
-- Of all tenants: they share the keys.
select id, sealed from notification_channels where sealed <> '' order by id for update;

-- name: ReplaceSealedChannel :exec
-- Another key seals the same value: nothing that people see changes.
update notification_channels set sealed = @sealed where id = @id;
