-- The MAC that the appending process alone can make. Entries from before have none.
alter table audit_events add column mac text;

-- From which entry on the entries of a chain carry MACs of a key, signed by it. The tenant '' stands
-- for all chains that are not named: from its epoch on each chain must have one of its own.
create table audit_epochs (
    tenant    text        not null,
    from_seq  bigint      not null,
    ts        timestamptz not null,
    key_id    text        not null,
    signature bytea       not null,
    primary key (tenant, from_seq, key_id, ts)
);
create trigger audit_epochs_append_only before update or delete or truncate on audit_epochs for each statement execute function audit_refuse();
alter table audit_epochs enable always trigger audit_epochs_append_only;

---- create above / drop below ----

drop table audit_epochs;
alter table audit_events drop column mac;
