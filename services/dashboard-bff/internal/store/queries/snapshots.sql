-- name: LockSnapshots :exec
-- One new snapshot of a tenant at a time, so that the count holds.
select pg_advisory_xact_lock(hashtextextended('dashboard.snapshot ' || @tenant::text, 0));

-- name: ForgetSnapshots :exec
delete from snapshots where expires_at <= now();

-- name: CountSnapshots :one
select count(*) from snapshots where tenant = @tenant and expires_at > now();

-- name: InsertSnapshot :one
insert into snapshots (token_digest, tenant, view, created_by, expires_at)
values (@token_digest, @tenant, @view, @created_by, now() + make_interval(hours => @ttl_hours::int)) returning expires_at;

-- name: GetSnapshot :one
select view, created_by, expires_at from snapshots where token_digest = @token_digest and tenant = @tenant and expires_at > now();
