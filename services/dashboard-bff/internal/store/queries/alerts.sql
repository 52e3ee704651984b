-- name: ReadClock :one
-- The database's clock is the one that all replicas share.
select clock_timestamp()::timestamptz as now;

-- name: ClaimAlertReading :execrows
-- Records the reading unless a newer one was applied; the row is the tenant's lock until the transaction ends.
insert into alert_readings as r (tenant, read_at) values (@tenant, @read_at)
on conflict (tenant) do update set read_at = excluded.read_at where r.read_at < excluded.read_at;

-- name: ListAlertStates :many
select tenant, alert_id, since, source, severity, state, title, labels, acked_by, acked_at, resolved_at from alert_states
where tenant = @tenant and (state <> 'resolved' or resolved_at > now() - interval '24 hours');

-- name: LockTenantAlertStates :many
-- An acknowledgement that is being made must not be lost to what was read before it.
select tenant, alert_id, since, source, severity, state, title, labels, acked_by, acked_at, resolved_at from alert_states
where tenant = @tenant
order by alert_id, since
for update;

-- name: LockAlertStates :many
select tenant, alert_id, since, source, severity, state, title, labels, acked_by, acked_at, resolved_at from alert_states
where tenant = @tenant and alert_id = @alert_id and (state <> 'resolved' or resolved_at > now() - interval '24 hours')
order by since
for update;

-- name: PutAlertState :exec
insert into alert_states (tenant, alert_id, since, source, severity, state, title, labels, acked_by, acked_at, resolved_at)
values (@tenant, @alert_id, @since, @source, @severity, @state, @title, @labels, @acked_by, @acked_at, null)
on conflict (tenant, alert_id, since) do update set source = excluded.source, severity = excluded.severity, state = excluded.state,
    title = excluded.title, labels = excluded.labels, acked_by = excluded.acked_by, acked_at = excluded.acked_at, resolved_at = null;

-- name: ResolveAlertState :exec
update alert_states set state = 'resolved', resolved_at = now() where tenant = @tenant and alert_id = @alert_id and since = @since;

-- name: AckAlertState :one
update alert_states set state = 'acknowledged', acked_by = @acked_by, acked_at = now()
where tenant = @tenant and alert_id = @alert_id and since = @since returning acked_at::timestamptz as acked_at;

-- name: ForgetAlertStates :exec
delete from alert_states where tenant = @tenant and state = 'resolved' and resolved_at <= now() - interval '24 hours';
