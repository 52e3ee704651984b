-- How requests of a model that name neither version nor alias are shared out among its aliases. Each change raises
-- the revision in its transaction; replicas look at that one row to notice.
create table traffic_rules (
    model      text primary key,
    rules      jsonb not null, -- alias to percent
    updated_at timestamptz not null,
    updated_by text not null
);

create table traffic_revision (
    only_row boolean primary key default true check (only_row),
    revision bigint not null
);
insert into traffic_revision (revision) values (1);

---- create above / drop below ----

drop table traffic_revision;
drop table traffic_rules;
