-- The audit ledger: one hash chain per tenant. details is json, not jsonb: what is hashed is what is
-- stored, to the byte.
create table audit_events (
    tenant     text        not null,
    seq        bigint      not null,
    event_id   uuid        not null constraint audit_events_event_id unique,
    ts         timestamptz not null check (isfinite(ts)),
    source     text        not null,
    actor      text        not null,
    action     text        not null,
    target     text        not null,
    outcome    text        not null check (outcome in ('ok', 'denied', 'failed')),
    request_id text,
    details    json        not null,
    prev_hash  text        not null,
    hash       text        not null,
    primary key (tenant, seq)
);
create index audit_events_target on audit_events (tenant, target, seq);
create index audit_events_action on audit_events (tenant, action, seq);
create index audit_events_actor on audit_events (tenant, actor, seq);

-- Where each chain ends, so that a cut-off tail is missed.
create table audit_heads (
    tenant     text primary key,
    seq        bigint      not null,
    hash       text        not null,
    updated_at timestamptz not null
);

-- The fence of the last writer, by kind of coordinator: their counts have nothing to do with each other.
create table audit_writers (
    coordinator text primary key,
    fence       bigint not null
);

create table audit_keys (
    key_id     text primary key,
    public_key bytea       not null,
    created_at timestamptz not null
);

-- Who vouches for a key: the signature of the one that took over from it. Rows of audit_keys prove
-- nothing by themselves.
create table audit_vouches (
    key_id     text  not null,
    vouched_by text  not null,
    signature  bytea not null,
    primary key (key_id, vouched_by)
);

create table audit_checkpoints (
    tenant    text        not null,
    seq       bigint      not null,
    hash      text        not null,
    ts        timestamptz not null,
    key_id    text        not null,
    signature bytea       not null,
    primary key (tenant, seq)
);

-- The last verification of each whole chain.
create table audit_verdicts (
    tenant        text primary key,
    verified      boolean     not null,
    checked       bigint      not null,
    head_seq      bigint      not null,
    head_hash     text        not null,
    first_bad_seq bigint,
    reason        text,
    verified_at   timestamptz not null
);

-- When all chains were last verified.
create table audit_rounds (
    one         boolean primary key default true check (one),
    verified_at timestamptz not null
);

create function audit_refuse() returns trigger language plpgsql as $$
begin
    raise exception '% is append-only: % is refused', tg_table_name, tg_op;
end
$$;

-- Always: a session that replays a replica's changes is refused as well.
create trigger audit_events_append_only before update or delete or truncate on audit_events for each statement execute function audit_refuse();
alter table audit_events enable always trigger audit_events_append_only;
create trigger audit_checkpoints_append_only before update or delete or truncate on audit_checkpoints for each statement execute function audit_refuse();
alter table audit_checkpoints enable always trigger audit_checkpoints_append_only;
create trigger audit_keys_append_only before update or delete or truncate on audit_keys for each statement execute function audit_refuse();
alter table audit_keys enable always trigger audit_keys_append_only;
create trigger audit_vouches_append_only before update or delete or truncate on audit_vouches for each statement execute function audit_refuse();
alter table audit_vouches enable always trigger audit_vouches_append_only;

---- create above / drop below ----

drop table audit_rounds;
drop table audit_verdicts;
drop table audit_checkpoints;
drop table audit_vouches;
drop table audit_keys;
drop table audit_writers;
drop table audit_heads;
drop table audit_events;
drop function audit_refuse();
