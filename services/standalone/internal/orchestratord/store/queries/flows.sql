-- name: InsertFlow :execrows
insert into flow (id, created, updated, name, tags, labels)
values (@id, @now, @now, @name, @tags, @labels)
on conflict (name) do nothing;

-- name: FlowByName :one
select * from flow where name = @name;

-- name: FlowByID :one
select * from flow where id = @id;

-- name: Flows :many
select * from flow
where (cardinality(@ids::uuid[]) = 0 or id = any(@ids))
  and (cardinality(@names::text[]) = 0 or name = any(@names))
order by name limit @max offset @skip;
