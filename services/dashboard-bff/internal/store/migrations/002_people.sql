-- What reaches a person: the inbox, and the channels that carry the same notices outside.

-- One notice per event. Facts of the tenant platform are read by every tenant.
create table notices (
    id          uuid primary key, -- the event's id
    tenant      text not null,
    kind        text not null check (kind in ('mention', 'approval', 'alert')),
    object      text not null, -- the comment, the approval record or the alert
    recipient   text, -- of a mention: the name as written, in lower case
    author      text not null, -- who caused it, and needs no notice of it; empty: no person
    title       text not null,
    path        text not null, -- its page in the web UI
    happened_at timestamptz not null
);
create index notices_newest on notices (tenant, happened_at desc, id desc);
create index notices_object on notices (tenant, kind, object);

-- Whether a notice of a tenant concerns a person: a mention those who bear the name, an approval those who may decide it,
-- an alert everybody, and nothing the one who caused it.
create function concerns(kind text, recipient text, author text, person text, names text[], decides boolean) returns boolean
    language sql immutable
    return author <> person and case kind when 'mention' then recipient = any (names) when 'approval' then decides else true end;

-- What a notice was about has ended: decided, resolved, removed. It is a row of its own, so that an end that is
-- handled before the beginning still ends it.
create table notice_endings (
    tenant   text not null,
    kind     text not null,
    object   text not null,
    outcome  text not null,
    ended_at timestamptz not null,
    primary key (tenant, kind, object)
);

create table notice_reads (
    tenant    text not null, -- the person's
    person    text not null,
    notice_id uuid not null references notices (id) on delete cascade,
    read_at   timestamptz not null default now(),
    primary key (tenant, person, notice_id)
);
create index notice_reads_notice on notice_reads (notice_id);

create table notification_channels (
    id            uuid primary key,
    tenant        text not null,
    name          text not null,
    kind          text not null check (kind in ('webhook', 'slack', 'email')),
    events        text[] not null,
    enabled       boolean not null,
    host          text not null, -- of the address, which is a credential as a whole; empty for mail
    recipients    text[] not null, -- of mail
    sealed        text not null, -- address and signing secret: v1.<kid>.<nonce>.<ciphertext>; empty for mail
    created_by    text not null,
    created_at    timestamptz not null default now(),
    updated_at    timestamptz not null default now(),
    claimed_until timestamptz, -- one process at a time sends over a channel
    succeeded_at  timestamptz,
    failed_at     timestamptz,
    last_error    text,
    unique (tenant, name)
);

-- The id is what a receiver can drop a repeat by: it stays the same over all attempts.
create table notification_deliveries (
    id              uuid primary key default gen_random_uuid(),
    tenant          text not null,
    channel_id      uuid not null references notification_channels (id) on delete cascade,
    event_id        uuid not null,
    message         jsonb not null,
    attempts        int not null default 0,
    next_attempt_at timestamptz not null default now(),
    delivered_at    timestamptz,
    abandoned_at    timestamptz,
    created_at      timestamptz not null default now(),
    unique (channel_id, event_id)
);
create index notification_deliveries_waiting on notification_deliveries (channel_id, next_attempt_at)
    where delivered_at is null and abandoned_at is null;
