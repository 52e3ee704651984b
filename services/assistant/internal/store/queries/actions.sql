-- name: InsertAction :one
insert into actions (id, session_id, cluster, turn, state, operations, digest, command, risk, always_confirm, confirms, notes, diff,
    requester, requester_role, requester_user, request_id, proposed_at, expires_at, basis, decider, decider_role, decided_at, decided_turn)
values (@id, @session_id, @cluster, @turn, @state, @operations, @digest, @command, @risk, @always_confirm, @confirms, @notes, @diff,
    @requester, @requester_role, @requester_user, @request_id, @now, @expires_at, @basis, @decider, @decider_role, @decided_at, @decided_turn)
returning *;

-- name: GetAction :one
select * from actions where id = @id;

-- name: ActionsIn :many
select * from actions where session_id = @session_id and state = @state order by proposed_at, id;

-- name: PendingWithDigest :one
select * from actions where session_id = @session_id and digest = @digest and state = 'pending' and expires_at > @now;

-- name: DecideAction :one
-- The one way out of pending by a person or a standing rule. Of two decisions one matches no row.
update actions set state = @to_state, basis = @basis, decider = @decider, decider_role = @decider_role, decided_at = @now,
    decided_turn = @decided_turn, reason = @reason
where id = @id and state = 'pending' and expires_at > @now
returning *;

-- name: StaleAction :one
update actions set state = 'stale', decided_at = @now
where id = @id and state = 'pending' and expires_at > @now
returning *;

-- name: LinkAction :one
update actions set replaced_by = @replaced_by where id = @id and state = 'stale' returning *;

-- name: ExpireAction :one
update actions set state = 'expired', decided_at = @now where id = @id and state = 'pending' and expires_at <= @now
returning *;

-- name: ExpireActions :many
update actions set state = 'expired', decided_at = @now
where id in (
    select a.id from actions a where a.state = 'pending' and a.expires_at <= @now
    order by a.expires_at limit @max_rows for update skip locked)
returning *;

-- name: ClaimAction :one
-- Written before the cluster is called, so that whoever comes after a crash knows what the call was bound to.
update actions set state = 'executing', executor = @executor, fence = fence + 1, lease_until = @lease_until,
    observed = @observed, started_at = @now
where id = @id and state = 'approved'
returning *;

-- name: TakeOverAction :one
-- The fence that was read keeps two rescuers apart.
update actions set executor = @executor, fence = fence + 1, lease_until = @lease_until
where id = @id and state = 'executing' and fence = @fence and lease_until <= @now
returning *;

-- name: KeepAction :execrows
update actions set lease_until = @lease_until
where id = @id and state = 'executing' and fence = @fence and lease_until > @now;

-- name: FinishAction :one
update actions set state = @to_state, finished_at = @now, result = @result, lease_until = null
where id = @id and state = 'executing' and fence = @fence
returning *;

-- name: SpendAction :exec
-- What has ended never runs again, so nothing of what it would write is needed any more.
update actions set operations = @operations, observed = null
where id = @id and state in ('denied', 'expired', 'stale', 'succeeded', 'failed', 'unknown');

-- name: VerifyAction :exec
update actions set verification = @verification where id = @id and state = 'succeeded';

-- name: AbandonedActions :many
select * from actions where state = 'executing' and lease_until <= @now order by lease_until limit @max_rows;

-- name: ExpireSessionActions :many
update actions set state = 'expired', decided_at = @now
where session_id = @session_id and state = 'pending' and expires_at <= @now
returning *;

-- name: PendingAmong :many
-- The session of each action that waits and that the principal asked for; two are enough to know.
select session_id from actions
where id = any(@ids::uuid[]) and requester = @requester and state = 'pending' and expires_at > @now limit 2;

-- name: LockUnfinished :many
-- Nobody claims an approved one from here on.
select state from actions where session_id = @session_id and state in ('approved', 'executing') for update;

-- name: ActionsDecidedIn :many
select * from actions where session_id = @session_id and decided_turn = @turn::int order by decided_at, id;

-- name: ActionsPage :many
select * from actions
where session_id = @session_id and (not @later::bool or (proposed_at, id) > (@after_at::timestamptz, @after_id::uuid))
order by proposed_at, id limit @max_rows;

-- name: CountPending :one
select count(*) from actions where state = 'pending' and expires_at > @now;

-- name: NameActions :execrows
-- Actions from before clusters were configured by name.
update actions set cluster = @cluster where cluster = '';
