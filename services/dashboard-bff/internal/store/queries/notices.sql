-- name: InsertNotice :exec
insert into notices (id, tenant, kind, object, recipient, author, title, path, happened_at)
values (@id, @tenant, @kind, @object, @recipient, @author, @title, @path, @happened_at)
on conflict (id) do nothing;

-- name: EndNotices :exec
-- The latest end stays, whatever the order in which they are handled.
insert into notice_endings as e (tenant, kind, object, outcome, ended_at) values (@tenant, @kind, @object, @outcome, @ended_at)
on conflict (tenant, kind, object) do update set outcome = excluded.outcome, ended_at = excluded.ended_at
where e.ended_at < excluded.ended_at;

-- name: ListNotices :many
-- Newest first, before a position. Of several notices of one object the newest counts.
select n.id, n.kind, n.object, n.author, n.title, n.path, n.happened_at, r.read_at,
    coalesce(case when e.ended_at >= n.happened_at then e.outcome end, '')::text as outcome
from notices n
left join notice_endings e on e.tenant = n.tenant and e.kind = n.kind and e.object = n.object
left join notice_reads r on r.notice_id = n.id and r.tenant = @tenant and r.person = @person
where (n.tenant = @tenant or n.tenant = 'platform') and concerns(n.kind, n.recipient, n.author, @person::text, @names::text[], @decides::boolean)
  and not exists (select from notices m where m.tenant = n.tenant and m.kind = n.kind and m.object = n.object
      and m.recipient is not distinct from n.recipient and (m.happened_at, m.id) > (n.happened_at, n.id))
  and (not @unread_only::boolean or r.read_at is null and coalesce(e.ended_at < n.happened_at, true))
  and (sqlc.narg(before_at)::timestamptz is null or (n.happened_at, n.id) < (sqlc.narg(before_at), @before_id::uuid))
order by n.happened_at desc, n.id desc
limit @max_rows;

-- name: CountUnreadNotices :one
select count(*) from notices n
left join notice_endings e on e.tenant = n.tenant and e.kind = n.kind and e.object = n.object
where (n.tenant = @tenant or n.tenant = 'platform') and concerns(n.kind, n.recipient, n.author, @person::text, @names::text[], @decides::boolean)
  and not exists (select from notices m where m.tenant = n.tenant and m.kind = n.kind and m.object = n.object
      and m.recipient is not distinct from n.recipient and (m.happened_at, m.id) > (n.happened_at, n.id))
  and coalesce(e.ended_at < n.happened_at, true)
  and not exists (select from notice_reads r where r.tenant = @tenant and r.person = @person and r.notice_id = n.id);

-- name: ReadNotices :execrows
-- Marks one notice, or all up to a time, of those that concern the person. A notice that comes meanwhile stays unread.
insert into notice_reads as r (tenant, person, notice_id)
select @tenant, @person, n.id from notices n
where (n.tenant = @tenant or n.tenant = 'platform') and concerns(n.kind, n.recipient, n.author, @person::text, @names::text[], @decides::boolean)
  and (sqlc.narg(id)::uuid is null or n.id = sqlc.narg(id)) and n.happened_at <= coalesce(sqlc.narg(until)::timestamptz, n.happened_at)
on conflict (tenant, person, notice_id) do update set read_at = r.read_at;

-- name: ForgetNotices :exec
-- Of all tenants: what has been there for ninety days is no news.
delete from notices where happened_at < now() - interval '90 days';

-- name: ForgetNoticeEndings :exec
delete from notice_endings where ended_at < now() - interval '90 days';
