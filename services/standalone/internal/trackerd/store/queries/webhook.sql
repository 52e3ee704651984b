-- name: CreateWebhook :one
insert into webhook (id, name, description, url, events, secret, status, created, updated)
values ($1, $2, $3, $4, $5, $6, $7, $8, $8)
returning *;

-- name: Webhook :one
select * from webhook where id = $1;

-- name: LockWebhook :one
select * from webhook where id = $1 for update;

-- name: Webhooks :many
select * from webhook order by seq limit $1 offset $2;

-- name: ActiveWebhooks :many
select * from webhook where status = 'ACTIVE' and events @> @event::jsonb order by seq;

-- name: CountWebhooks :one
select count(*) from webhook;

-- name: UpdateWebhook :one
update webhook set name = $2, description = $3, url = $4, events = $5, secret = $6, status = $7, updated = $8
where id = $1
returning *;

-- name: DeleteWebhook :execrows
delete from webhook where id = $1;
