-- name: ListFlagOverrides :many
select tenant, name, enabled, updated_at, updated_by from flag_overrides;

-- name: ListTenantFlagOverrides :many
select name, enabled, updated_at, updated_by from flag_overrides where tenant = @tenant;

-- name: LockFlag :exec
select pg_advisory_xact_lock(hashtextextended('dashboard.flag ' || @tenant::text || ' ' || @name::text, 0));

-- name: GetFlagOverride :one
select enabled from flag_overrides where tenant = @tenant and name = @name;

-- name: PutFlagOverride :exec
insert into flag_overrides (tenant, name, enabled, updated_at, updated_by) values (@tenant, @name, @enabled, clock_timestamp(), @updated_by)
on conflict (tenant, name) do update set enabled = excluded.enabled, updated_at = excluded.updated_at, updated_by = excluded.updated_by;

-- name: DeleteFlagOverride :exec
delete from flag_overrides where tenant = @tenant and name = @name;
