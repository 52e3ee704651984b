-- name: InsertSession :execrows
insert into sessions (id, owner, cluster, namespace, seed, created_at, used_at)
values (@id, @owner, @cluster, '', @seed, @now, @now)
on conflict (id) do nothing;

-- name: GetSession :one
select * from sessions where id = @id;

-- name: LockSession :one
-- Orders turns, proposals and the end of one session.
select * from sessions where id = @id for update;

-- name: ListSessions :many
select * from sessions
where (@every::bool or owner = @owner or shared) and (not @later::bool or (used_at, id) < (@before_used::timestamptz, @before_id::text))
order by used_at desc, id desc limit @max_rows;

-- name: SetSessionScope :exec
update sessions set namespace = @namespace where id = @id;

-- name: DeleteSession :execrows
delete from sessions where id = @id;

-- name: UnusedSessions :many
select s.id from sessions s
where s.used_at < @before
  and not exists (select from actions a where a.session_id = s.id and a.state in ('pending', 'approved', 'executing'))
  and not exists (select from turns t where t.session_id = s.id and t.state = 'active')
order by s.used_at limit @max_rows for update skip locked;

-- name: DeleteSessions :execrows
delete from sessions where id = any(@ids::text[]);

-- name: PutStandingApproval :exec
insert into standing_approvals (session_id, principal, since) values (@session_id, @principal, @now)
on conflict (session_id, principal) do nothing;

-- name: DropStandingApproval :execrows
delete from standing_approvals where session_id = @session_id and principal = @principal;

-- name: HasStandingApproval :one
select exists (select from standing_approvals where session_id = @session_id and principal = @principal);

-- name: ReserveSession :exec
insert into ended_sessions (id, owner, until) values (@id, @owner, @until)
on conflict (id) do update set owner = excluded.owner, until = excluded.until;

-- name: SessionReserved :one
-- Whether the id was somebody else's until a moment ago.
select exists (select from ended_sessions where id = @id and owner <> @owner and until > @now);

-- name: DropReserved :exec
delete from ended_sessions where until <= @now;

-- name: NameSessions :execrows
-- Sessions from before clusters were configured by name.
update sessions set cluster = @cluster where cluster = '';
