-- name: InsertVariable :execrows
insert into variable (id, created, updated, name, value, tags) values (@id, @now, @now, @name, @value, @tags)
on conflict (name) do nothing;

-- name: VariableByName :one
select * from variable where name = @name;

-- name: Variables :many
select * from variable where (cardinality(@names::text[]) = 0 or name = any(@names)) order by name limit @max offset @skip;

-- name: CountVariables :one
select count(*) from variable;

-- name: UpdateVariable :execrows
update variable set updated = @now, name = coalesce(sqlc.narg(new_name), name), value = coalesce(sqlc.narg(value)::jsonb, value),
  tags = coalesce(sqlc.narg(tags)::text[], tags)
where name = @name;

-- name: DeleteVariable :execrows
delete from variable where name = @name;
