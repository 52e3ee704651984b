create table outbox (
    id              uuid primary key,
    seq             bigserial   not null,
    tenant          text        not null,
    namespace       text        not null,
    name            text        not null,
    subject_id      text,
    payload         jsonb       not null,
    actor           text        not null,
    request_id      text,
    traceparent     text,
    created_at      timestamptz not null default now(),
    next_attempt_at timestamptz not null default now(),
    refusals        int         not null default 0,
    claimed_by      uuid,
    claimed_until   timestamptz,
    published_at    timestamptz,
    stream_seq      bigint,
    poison_at       timestamptz,
    last_error      text
) with (fillfactor = 70); -- a claim rewrites the row within its page

create unique index outbox_pending on outbox (seq) where published_at is null and poison_at is null;
create index outbox_published on outbox (stream_seq) where published_at is not null;
create index outbox_poison on outbox (seq) where poison_at is not null;

-- What the relay last knew of the broker's stream.
create table outbox_stream (
    name       text primary key,
    created_at timestamptz not null
);

-- A trigger, so that whoever inserts wakes the relay, at commit and once a transaction.
create function outbox_notify() returns trigger language plpgsql as $$
begin
    perform pg_notify('outbox_' || tg_table_schema, '');
    return null;
end
$$;
create trigger outbox_notify after insert on outbox for each statement execute function outbox_notify();

create table inbox (
    consumer    text        not null,
    event_id    uuid        not null,
    received_at timestamptz not null default now(),
    primary key (consumer, event_id)
);
create index inbox_received on inbox using brin (received_at);

create table dead_letter (
    consumer   text        not null,
    event_id   uuid        not null,
    subject    text        not null,
    body       bytea       not null,
    deliveries int         not null,
    last_error text        not null,
    dead_at    timestamptz not null default now(),
    primary key (consumer, event_id)
);

---- create above / drop below ----

drop table dead_letter;
drop table inbox;
drop table outbox_stream;
drop table outbox;
drop function outbox_notify();
