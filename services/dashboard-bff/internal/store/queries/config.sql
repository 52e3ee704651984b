-- name: LockConfig :exec
-- One change of the configuration at a time, so that If-Match compares with what the change replaces.
select pg_advisory_xact_lock(hashtextextended('dashboard.config', 0));

-- name: ListConfigValues :many
select key, value, secret, updated_at, updated_by from config_values order by key;

-- name: PutConfigValue :exec
insert into config_values (key, value, secret, updated_at, updated_by) values (@key, @value, @secret, clock_timestamp(), @updated_by)
on conflict (key) do update set value = excluded.value, secret = excluded.secret, updated_at = excluded.updated_at,
    updated_by = excluded.updated_by;

-- name: DeleteConfigValue :exec
delete from config_values where key = @key;

-- name: ReplaceSealedValue :exec
-- Another key seals the same value: nothing that people see changes.
update config_values set value = @value where key = @key;
