-- name: AddToInbox :execrows
insert into inbox (consumer, event_id) values (@consumer, @event_id) on conflict do nothing;

-- name: AddAllToInbox :many
insert into inbox (consumer, event_id) select @consumer, unnest(@event_ids::uuid[])
on conflict do nothing returning event_id;

-- name: CountHandover :one
insert into handover as h (consumer, event_id, times) values (@consumer, @event_id, 1)
on conflict (consumer, event_id) do update set times = h.times + 1, counted_at = now() returning times;

-- name: UncountHandover :exec
update handover set times = times - 1 where consumer = @consumer and event_id = @event_id and times > 0;

-- name: ForgetHandovers :exec
delete from handover where consumer = @consumer and event_id = @event_id;

-- name: BuryEvent :exec
insert into dead_letter (consumer, event_id, subject, body, deliveries, last_error)
values (@consumer, @event_id, @subject, @body, @deliveries, @last_error) on conflict (consumer, event_id) do update
set deliveries = excluded.deliveries, last_error = excluded.last_error, dead_at = now();

-- name: SweepInbox :exec
delete from inbox where consumer = @consumer and received_at < now() - make_interval(secs => @keep_seconds::float8);

-- name: SweepHandovers :exec
delete from handover where consumer = @consumer and counted_at < now() - make_interval(secs => @keep_seconds::float8);

-- name: ListUnconsumed :many
select t.id::uuid from unnest(sqlc.arg(ids)::uuid[]) as t (id)
where not exists (select 1 from inbox i where i.consumer = sqlc.arg(consumer) and i.event_id = t.id);
