-- name: AlertsOf :many
select * from alerts where source = @source;

-- name: GetAlert :one
select * from alerts where source = @source and key = @key and tenant = @tenant;

-- name: PutAlert :exec
insert into alerts (tenant, source, key, severity, title, labels, firing, since, observed_at)
values (@tenant, @source, @key, @severity, @title, @labels, @firing, @since, @observed_at)
on conflict (source, key, tenant) do update set severity = @severity, title = @title, labels = @labels, firing = @firing,
    since = @since, observed_at = @observed_at;

-- name: ForgetAlerts :exec
delete from alerts where not firing and observed_at < @before;

-- name: AlertsReadAt :one
select read_at from alert_sources where source = @source;

-- name: SetAlertsReadAt :exec
insert into alert_sources (source, read_at) values (@source, @read_at) on conflict (source) do update set read_at = @read_at;

-- name: ListAlerts :many
-- Most severe first, then the longest firing.
select tenant, source, key, severity, title, labels, since,
    (case severity when 'critical' then 0 when 'error' then 1 else 2 end)::int as rank
from alerts
where firing and tenant in (@tenant, 'platform')
  and (not @later::bool or ((case severity when 'critical' then 0 when 'error' then 1 else 2 end), since, source, key, tenant)
    > (@after_rank::int, @after_since::timestamptz, @after_source::text, @after_key::text, @after_tenant::text))
order by rank, since, source, key, tenant
limit @max_rows;
