-- name: LockAlertGroup :one
-- Two notifications of one group are taken in one after the other.
select * from alert_groups where key_hash = @key_hash for update;

-- name: InsertAlertGroup :execrows
insert into alert_groups (key_hash, session_id, principal, status, digest, first_at, last_at)
values (@key_hash, @session_id, @principal, @status, @digest, @now, @now)
on conflict (key_hash) do nothing;

-- name: UpdateAlertGroup :exec
update alert_groups set session_id = @session_id, status = @status, digest = @digest, notifications = notifications + 1, last_at = @now
where key_hash = @key_hash;

-- name: InsertAlertNotification :exec
insert into alert_notifications (id, key_hash, session_id, principal, request_id, address, body, lease_until, received_at)
values (@id, @key_hash, @session_id, @principal, @request_id, @address, @body, @now, @now);

-- name: ClaimAlertNotification :one
-- The oldest one that nobody works on. Those of one session follow one another, so that it is told in order.
update alert_notifications set lease_until = @lease_until, attempt = attempt + 1
where id = (
    select n.id from alert_notifications n
    where n.lease_until <= @now
      and not exists (select from alert_notifications o where o.session_id = n.session_id and (o.received_at, o.id) < (n.received_at, n.id))
    order by n.received_at, n.id limit 1 for update skip locked
)
returning *;

-- name: KeepAlertNotification :execrows
update alert_notifications set lease_until = @lease_until where id = @id and attempt = @attempt;

-- name: DropAlertNotification :execrows
delete from alert_notifications where id = @id and attempt = @attempt;

-- name: ForgetAlertDigest :exec
-- Nothing was found out: the group's next notification begins an investigation, whatever it says.
update alert_groups set digest = '' where key_hash = @key_hash;

-- name: CountAlertNotifications :one
select count(*) from alert_notifications;

-- name: CountAlertNotificationsOf :one
select count(*) from alert_notifications where principal = @principal;

-- name: SupersedeAlertNotifications :exec
-- What a group says of the same state replaces what nobody has worked on yet.
delete from alert_notifications where key_hash = @key_hash and attempt = 0 and body->>'status' = @status::text;

-- name: DropAlertGroups :exec
-- Groups that were not heard of for as long as sessions are kept.
delete from alert_groups where last_at < @before;

-- name: TouchSession :execrows
-- A repeated alert keeps the session from being forgotten. Zero rows mean that it is gone.
update sessions set used_at = greatest(used_at, @now) where id = @id;

-- name: RepeatedAlert :one
-- The turn of a notification that was taken up before; one that was cut short is none.
select * from turns
where session_id = @session_id and request_id = @request_id::text and query_kind = 'alert'
  and (state = 'active' or reason is null or reason <> all(@cut_short::text[]))
order by number desc limit 1;

-- name: AlertTurns :many
-- The turns of one notification, the newest first.
select number, state, outcome, reason from turns
where session_id = @session_id and request_id = @request_id::text and query_kind = 'alert'
order by number desc;

-- name: ShareSession :exec
update sessions set shared = true where id = @id;

-- name: TakeSession :execrows
-- A session that nobody owns yet belongs to who asks in it first; that can be the holder of the key that sends the alerts.
update sessions set owner = @owner
where sessions.id = @id and sessions.shared and sessions.owner = (select g.principal from alert_groups g where g.session_id = @id order by g.last_at desc limit 1)
  and not exists (select from turns t where t.session_id = @id and t.principal = sessions.owner and t.query_kind <> 'alert');
