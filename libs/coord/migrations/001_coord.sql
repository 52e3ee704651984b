-- Rows of leases stay, for their fences.
create table coord_lease (
    name       text primary key,
    owner      uuid        not null,
    fence      bigint      not null,
    expires_at timestamptz not null
);

create table coord_once (
    key        text primary key,
    expires_at timestamptz not null
);
create index coord_once_expires on coord_once (expires_at);

-- Unlogged: a count needs no sync of the disk for each act, and a crash of the
-- database may forget it.
create unlogged table coord_rate (
    key     text primary key,
    acts    bigint      not null,
    ends_at timestamptz not null
) with (fillfactor = 50);
create index coord_rate_ends on coord_rate (ends_at);

create table coord_breaker (
    name        text primary key,
    failures    int not null,
    opened_at   timestamptz,
    trial_until timestamptz
);

create table coord_config (
    key        text primary key,
    value      bytea       not null,
    updated_at timestamptz not null default now()
);

---- create above / drop below ----

drop table coord_config;
drop table coord_breaker;
drop table coord_rate;
drop table coord_once;
drop table coord_lease;
