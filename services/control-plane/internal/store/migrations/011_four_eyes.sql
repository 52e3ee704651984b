-- Who counts as having asked, by name: nobody of them may decide alone. person_unknown: the person behind the
-- commit is not known, so two have to approve; first_approver is the one who did so first. Of pushes from before
-- this migration nobody is known.
alter table pushes
    add column requesters     text[] not null default '{}',
    add column person_unknown boolean not null default true;
alter table approvals
    add column requesters        text[] not null default '{}',
    add column person_unknown    boolean not null default false,
    add column first_approver    text,
    add column first_approved_at timestamptz;
alter table runs
    add column requesters     text[] not null default '{}',
    add column person_unknown boolean not null default false;
alter table promotions
    add column requesters        text[] not null default '{}',
    add column person_unknown    boolean not null default false,
    add column first_approver    text,
    add column first_approved_at timestamptz;
update approvals set requesters = array[requested_by];
update runs set requesters = array[requested_by];
update promotions set requesters = array[requested_by];

-- Changes of what guards everything else (policies, gates, scopes, separation itself): under separation of duties
-- they wait here for a second person.
create table guarded_changes (
    id             uuid primary key,
    kind           text not null check (kind in ('promotion_policy', 'modelrepo_config', 'auto_retrain', 'setting')),
    target         text not null,
    old            jsonb,
    new            jsonb,
    state          text not null check (state in ('pending', 'applied', 'rejected', 'expired', 'superseded')),
    tenant         text not null,
    requested_by   text not null,
    requested_at   timestamptz not null,
    person_unknown boolean not null,
    first_approver text,
    decided_by     text,
    decided_at     timestamptz,
    reason         text,
    expires_at     timestamptz
);
create unique index guarded_changes_one_pending on guarded_changes (kind, target) where state = 'pending';
create index guarded_changes_newest on guarded_changes (id desc);

-- The settings of the environment that guard others, as they are in force: one that loosens is withheld until it
-- is approved.
create table guarded_settings (
    name       text primary key,
    value      jsonb not null,
    updated_at timestamptz not null,
    updated_by text not null
);

---- create above / drop below ----

drop table guarded_settings, guarded_changes;
alter table promotions drop column requesters, drop column person_unknown, drop column first_approver, drop column first_approved_at;
alter table runs drop column requesters, drop column person_unknown;
alter table approvals drop column requesters, drop column person_unknown, drop column first_approver, drop column first_approved_at;
alter table pushes drop column requesters, drop column person_unknown;
