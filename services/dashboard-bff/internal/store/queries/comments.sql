-- name: InsertComment :one
insert into comments (id, tenant, entity_type, entity_id, author, author_name, body, body_html, mentions)
values (@id, @tenant, @entity_type, @entity_id, @author, @author_name, @body, @body_html, @mentions) returning created_at;

-- name: ListComments :many
-- Oldest first, after a position.
select id, author, author_name, body, body_html, mentions, created_at, deleted_at from comments
where tenant = @tenant and entity_type = @entity_type and entity_id = @entity_id
  and (sqlc.narg(after_at)::timestamptz is null or (created_at, id) > (sqlc.narg(after_at), @after_id::uuid))
order by created_at, id
limit @max_rows;

-- name: ListNewestComments :many
-- Newest first, those that are left, before a position.
select id, author, body, created_at from comments
where tenant = @tenant and entity_type = @entity_type and entity_id = @entity_id and deleted_at is null
  and (sqlc.narg(before_at)::timestamptz is null or (created_at, id) < (sqlc.narg(before_at), @before_id::uuid))
order by created_at desc, id desc
limit @max_rows;

-- name: LockComment :one
select author, deleted_at from comments
where tenant = @tenant and entity_type = @entity_type and entity_id = @entity_id and id = @id
for update;

-- name: BuryComment :exec
-- A tombstone keeps who wrote and when, not what.
update comments set body = '', body_html = '', mentions = '{}', deleted_at = now(), deleted_by = @deleted_by where tenant = @tenant and id = @id;
