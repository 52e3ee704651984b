-- Requests of programs: what one proposed, and alerts. Their words are nobody's.
alter table turns drop constraint turns_query_kind_check;
alter table turns add constraint turns_query_kind_check check (query_kind in ('question', 'decision', 'proposal', 'alert'));

-- A shared session may be read by every caller; who first asks in it owns it from then on.
alter table sessions add column shared boolean not null default false;
create index sessions_shared on sessions (used_at desc, id) where shared;

-- Groups of alerts, each with the session of its investigation.
create table alert_groups (
    key_hash      bytea primary key,         -- SHA-256 of the principal and of the sender's group key
    session_id    text not null,
    principal     text not null,             -- whose key sent it
    status        text not null check (status in ('firing', 'resolved')),
    digest        bytea not null,            -- of the status and the alerts that were sent last
    notifications integer not null default 1,
    first_at      timestamptz not null,
    last_at       timestamptz not null
);
create index alert_groups_session on alert_groups (session_id);
create index alert_groups_last on alert_groups (last_at);

-- Notifications that wait for their turn. One replica holds a row by its lease; the turn's own lease sees to a crash
-- in the middle.
create table alert_notifications (
    id          uuid primary key,
    key_hash    bytea not null references alert_groups (key_hash) on delete cascade,
    session_id  text not null,
    principal   text not null,
    request_id  text not null,
    address     text not null,
    body        jsonb not null, -- what was sent, within its bounds
    attempt     integer not null default 0,
    lease_until timestamptz not null,
    received_at timestamptz not null
);
create index alert_notifications_due on alert_notifications (lease_until, received_at);
