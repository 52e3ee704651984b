-- How often an event was handed to a handler after its first delivery. The
-- broker's own count also rises for messages that waited in the buffer of a
-- consumer which ended.
create table handover (
    consumer   text        not null,
    event_id   uuid        not null,
    times      int         not null,
    counted_at timestamptz not null default now(),
    primary key (consumer, event_id)
);

---- create above / drop below ----

drop table handover;
