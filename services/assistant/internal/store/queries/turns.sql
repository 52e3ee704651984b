-- name: InsertTurn :one
insert into turns (session_id, number, id, completion_id, principal, role, request_id, query, query_hash, query_kind, include_usage,
    state, owner, fence, lease_until, attached_until, followed_until, started_at)
values (@session_id, @number, @id, @completion_id, @principal, @role, @request_id, @query, @query_hash, @query_kind, @include_usage,
    'active', @owner, @fence, @lease_until, @attached_until, @now, @now)
returning *;

-- name: UseSession :one
-- The next turn's number; also what keeps the session from being forgotten.
update sessions set last_turn = last_turn + 1, used_at = @now where id = @id returning last_turn;

-- name: GetTurn :one
select * from turns where session_id = @session_id and number = @number;

-- name: ActiveTurn :one
select * from turns where session_id = @session_id and state = 'active';

-- name: RepeatedTurn :one
-- The latest turn that the same principal asked for with the same words under the same request id.
select * from turns
where session_id = @session_id and request_id = @request_id::text and query_hash = @query_hash and principal = @principal
  and (state = 'active' or query_kind = 'decision' or finished_at > @since)
order by number desc limit 1;

-- name: LastTurns :many
-- Of what others than the owner said, only turns that decided something: else a stranger could push all that was
-- said before out of sight.
select t.number, t.principal, t.query, t.query_kind, t.answer, t.started_at, t.finished_at
from turns t join sessions s on s.id = t.session_id
where t.session_id = @session_id and t.state = 'finished'
  and (t.principal = s.owner or t.query_kind = 'alert' or exists (select from actions a where a.session_id = t.session_id and a.decided_turn = t.number))
order by t.number desc limit @max_rows;

-- name: EarlierTurns :many
-- What was said before the last turns, cut short, newest first.
select t.principal, t.query_kind, left(t.query, @most::int)::text as query, left(t.answer, @most::int)::text as answer
from turns t join sessions s on s.id = t.session_id
where t.session_id = @session_id and t.state = 'finished'
  and (t.principal = s.owner or t.query_kind = 'alert' or exists (select from actions a where a.session_id = t.session_id and a.decided_turn = t.number))
order by t.number desc limit @max_rows offset @skip_rows;

-- name: AppendFrames :execrows
-- Zero rows mean that the turn has another owner now. The share lock keeps a takeover waiting until
-- frames under the former fence are there, so none comes after what the new owner writes.
insert into frames (session_id, turn, seq, data)
select t.session_id, t.number, f.seq, f.data
from (select o.session_id, o.number from turns o
      where o.session_id = @session_id and o.number = @number and o.fence = @fence and o.state = 'active' for share) t,
     (select unnest(@seqs::int[]) as seq, unnest(@data::bytea[]) as data) f;

-- name: FramesAfter :many
select turn, seq, data from frames
where session_id = @session_id and (turn, seq) > (@turn::int, @seq::int) and turn <= @last_turn
order by turn, seq limit @max_rows;

-- name: LastFrame :one
select coalesce(max(seq), 0)::int from frames where session_id = @session_id and turn = @number;

-- name: KeepTurn :one
update turns set lease_until = @lease_until, attached_until = @attached_until
where session_id = @session_id and number = @number and fence = @fence and state = 'active'
returning followed_until, stop_requested;

-- name: FollowTurn :exec
-- A reader at another replica says that it is there.
update turns set followed_until = greatest(followed_until, @followed_until)
where session_id = @session_id and number = @number and state = 'active';

-- name: LeaveTurn :exec
-- The owner's last reader has gone.
update turns set attached_until = @now
where session_id = @session_id and number = @number and fence = @fence and state = 'active';

-- name: StopTurn :exec
update turns set stop_requested = true where session_id = @session_id and number = @number and state = 'active';

-- name: FinishTurn :execrows
update turns set state = 'finished', outcome = @outcome, reason = @reason, answer = @answer, finished_at = @now
where session_id = @session_id and number = @number and fence = @fence and state = 'active';

-- name: AbandonedTurns :many
select * from turns where state = 'active' and lease_until <= @now order by lease_until limit @max_rows;

-- name: TakeOverTurn :one
update turns set owner = @owner, fence = fence + 1, lease_until = @lease_until
where session_id = @session_id and number = @number and fence = @fence and state = 'active' and lease_until <= @now
returning *;

-- name: DropTurn :exec
-- One that never began: nothing of it was shown, so no repeat may find it.
delete from turns where session_id = @session_id and number = @number and fence = @fence and state = 'active';
