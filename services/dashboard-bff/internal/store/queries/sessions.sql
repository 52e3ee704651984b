-- name: PutSessionEntry :exec
insert into session_entries (key, value, expires_at)
values (sqlc.arg(key), sqlc.arg(value), now() + sqlc.arg(ttl_ms)::bigint * interval '1 millisecond')
on conflict (key) do update set value = excluded.value, expires_at = excluded.expires_at;

-- name: GetSessionEntry :one
select value from session_entries where key = $1 and expires_at > now();

-- name: TakeSessionEntry :one
-- An expired row stays for the sweep: it must not be handed out.
delete from session_entries where key = $1 and expires_at > now() returning value;

-- name: DeleteSessionEntry :exec
delete from session_entries where key = $1;

-- name: SweepSessionEntries :execrows
delete from session_entries
where key in (select s.key from session_entries s where s.expires_at <= now() order by s.expires_at limit 1000 for update skip locked);
