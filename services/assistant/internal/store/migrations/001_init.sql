-- Conversations. The id is the caller's, or a UUIDv7.
create table sessions (
    id         text primary key check (id ~ '^[A-Za-z0-9._:-]{1,128}$'),
    owner      text not null,
    namespace  text not null default '', -- default scope of its questions
    seed       jsonb not null,           -- messages that the first request brought along
    last_turn  integer not null default 0,
    created_at timestamptz not null,
    used_at    timestamptz not null
);
create index sessions_owner on sessions (owner, used_at desc, id);
create index sessions_used on sessions (used_at);

-- Who approved beforehand what they ask for in a session.
create table standing_approvals (
    session_id text not null references sessions (id) on delete cascade,
    principal  text not null,
    since      timestamptz not null,
    primary key (session_id, principal)
);

-- Turns: one request and its answer. fence tells the present owner from a former one, whose writes
-- match no row any more.
create table turns (
    session_id      text not null references sessions (id) on delete cascade,
    number          integer not null,
    id              uuid not null unique,
    completion_id   text not null,
    principal       text not null,
    role            text not null,
    request_id      text,             -- the caller's own; null when the server made it up
    query           text not null,
    query_hash      bytea not null,
    query_kind      text not null check (query_kind in ('question', 'decision')),
    include_usage   boolean not null,
    state           text not null check (state in ('active', 'finished')),
    outcome         text,
    reason          text,
    answer          text not null default '',
    owner           uuid not null,
    fence           bigint not null,
    lease_until     timestamptz not null,
    attached_until  timestamptz not null, -- somebody reads it at its owner, at least until then
    followed_until  timestamptz not null, -- somebody reads it at another replica, at least until then
    stop_requested  boolean not null default false,
    started_at      timestamptz not null,
    finished_at     timestamptz,
    primary key (session_id, number),
    check ((state = 'finished') = (finished_at is not null and outcome is not null))
);
create unique index turns_one_active on turns (session_id) where state = 'active';
create index turns_open on turns (lease_until) where state = 'active';
create index turns_request on turns (session_id, request_id) where request_id is not null;

-- What was streamed, byte for byte, without heartbeats and the closing marker.
create table frames (
    session_id text not null,
    turn       integer not null,
    seq        integer not null,
    data       bytea not null,
    primary key (session_id, turn, seq),
    foreign key (session_id, turn) references turns (session_id, number) on delete cascade
);

-- Writes that were proposed, and what became of them.
create table actions (
    id             uuid primary key,
    session_id     text not null references sessions (id) on delete cascade,
    turn           integer not null,
    state          text not null check (state in
        ('pending', 'approved', 'denied', 'expired', 'stale', 'executing', 'succeeded', 'failed', 'unknown')),
    operations     jsonb not null, -- expanded, with what they were shown against
    digest         text not null,
    command        text not null,
    risk           text not null check (risk in ('low', 'medium', 'high')),
    always_confirm boolean not null,
    confirms       text[] not null,
    notes          text[] not null,
    diff           text not null,
    requester      text not null,
    requester_role text not null,
    requester_user text not null,
    request_id     text not null,
    proposed_at    timestamptz not null,
    expires_at     timestamptz not null,
    basis          text check (basis in ('person', 'auto_approve', 'standing', 'session_deleted')),
    decider        text,
    decider_role   text,
    decided_at     timestamptz,
    decided_turn   integer, -- null when not decided in the chat
    reason         text,
    replaced_by    uuid,    -- the fresh proposal after a stale one
    fence          bigint not null default 0,
    executor       uuid,
    lease_until    timestamptz,
    observed       jsonb,   -- the operations with the uids and versions that the call is bound to
    started_at     timestamptz,
    finished_at    timestamptz,
    result         text,
    verification   text,
    check (state not in ('approved', 'denied', 'executing', 'succeeded', 'failed', 'unknown') or (decider is not null and basis is not null)),
    check (state <> 'executing' or (observed is not null and lease_until is not null))
);
create unique index actions_pending_digest on actions (session_id, digest) where state = 'pending';
create index actions_session on actions (session_id, proposed_at, id);
create index actions_expiry on actions (expires_at) where state = 'pending';
create index actions_leases on actions (lease_until) where state = 'executing';
