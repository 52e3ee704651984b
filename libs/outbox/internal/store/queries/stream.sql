-- name: StreamCreatedAt :one
select created_at from outbox_stream where name = @name;

-- name: SaveStream :exec
insert into outbox_stream (name, created_at) values (@name, @created_at)
on conflict (name) do update set created_at = excluded.created_at;

-- name: ResetPublished :execrows
update outbox set published_at = null, stream_seq = null where published_at is not null and stream_seq is not null;

-- name: ResetPublishedAfter :execrows
update outbox set published_at = null, stream_seq = null where published_at is not null and stream_seq > @last_seq::bigint;

-- name: ResetPublishedRows :execrows
update outbox set published_at = null, stream_seq = null where id = any(@ids::uuid[]) and published_at is not null;

-- name: NewestPublished :many
select id, stream_seq::bigint as stream_seq from outbox
where published_at is not null and stream_seq is not null order by stream_seq desc limit @max_rows;
