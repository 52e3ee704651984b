-- Ids of deleted sessions, kept from everybody but their owner while readers and turns of the deleted one may
-- still be about: those know a session by its id.
create table ended_sessions (
    id    text primary key,
    owner text not null,
    until timestamptz not null
);
create index ended_sessions_until on ended_sessions (until);
