-- name: Admissions :many
select model, version, digest from admissions order by model;

-- name: SetAdmission :exec
insert into admissions (model, version, digest) values (sqlc.arg(model), sqlc.arg(version), sqlc.arg(digest))
on conflict (model) do update set version = excluded.version, digest = excluded.digest;

-- name: KeepAdmissions :exec
-- Forgets the models that are not named.
delete from admissions where model <> all(sqlc.arg(models)::text[]);
