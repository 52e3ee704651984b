-- What the replicas share of polling the model repository: one row. source and branch say of what
-- head_commit and force_commit tell; another repository or branch begins anew.
create table poller (
    id           smallint primary key check (id = 1),
    source       text not null default '',
    branch       text not null default '',
    head_commit  text,        -- the newest head that was seen
    force_commit text,        -- the newest head that could be read; replicas with a checkout follow it
    fault        text,        -- why the head is not in force
    last_ok_at   timestamptz,
    checked_at   timestamptz, -- of the newest poll, however it ended
    last_error   text,        -- of the newest poll; null if it succeeded
    readings     bigint not null default 0, -- raised so that every replica reads the repository again
    nudges       bigint not null default 0, -- raised so that the leader polls now
    updated_at   timestamptz not null
);
insert into poller (id, updated_at) values (1, now());

---- create above / drop below ----

drop table poller;
