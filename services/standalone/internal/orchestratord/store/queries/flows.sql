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
order by case when @sort::text = 'CREATED_DESC' then created when @sort = 'UPDATED_DESC' then updated end desc,
  case when @sort = 'NAME_DESC' then name end desc, name
limit @max offset @skip;

-- name: CountFlows :one
select count(*) from flow;

-- name: DeleteFlow :execrows
delete from flow where id = @id;
