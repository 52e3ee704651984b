-- name: InsertTaskRun :one
insert into task_run (id, created, updated, name, flow_run_id, task_key, dynamic_key, tags, task_inputs)
values (@id, @now, @now, @name, @flow_run_id, @task_key, @dynamic_key, @tags, @task_inputs)
on conflict (flow_run_id, task_key, dynamic_key) do update set updated = excluded.updated
returning id;

-- name: TaskRuns :many
-- Each with the state of the flow run that it stands for, the newest if there are several.
select sqlc.embed(t), coalesce(c.state_type, 'PENDING')::text as state_type, coalesce(c.state_name, 'Pending')::text as state_name
from task_run t left join lateral (select r.state_type, r.state_name from flow_run r where r.parent_task_run_id = t.id order by r.seq desc limit 1) c on true
where (cardinality(@ids::uuid[]) = 0 or t.id = any(@ids))
  and (cardinality(@flow_run_ids::uuid[]) = 0 or t.flow_run_id = any(@flow_run_ids))
order by t.created, t.id limit @max offset @skip;
