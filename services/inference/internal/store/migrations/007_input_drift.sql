-- Input drift.
alter table snapshots
    add column zeros boolean, -- whether all numeric inputs were zero; null in rows written before
    add column features json; -- the scalar inputs by name; null in rows written before and for wide models

-- Requests that were refused because an input is not finite: they say that the producer is broken. They are no
-- snapshots, so that many of them push no prediction out; ids are of one sequence, which gives the order of both.
create table refused_inputs (
    id      bigint not null default nextval('snapshots_id_seq'),
    model   text not null,
    alias   text not null,
    version text not null,
    source  text not null,
    ts      timestamptz not null
);
create unique index refused_inputs_window on refused_inputs (model, alias, id);
create index refused_inputs_age on refused_inputs using brin (ts);

-- What an input baseline holds beside the norms, which are its predictions.
alter table drift_baselines
    add column means double precision[],
    add column stds double precision[],
    add column zeros integer, -- rows of which all numeric inputs were zero
    add column features json; -- per name the values of the rows

-- Snapshots up to and including after_id no longer count for that kind.
create table drift_resets (
    model    text not null,
    alias    text not null,
    kind     text not null check (kind in ('prediction', 'input')),
    after_id bigint not null,
    primary key (model, alias, kind)
);

---- create above / drop below ----

drop table drift_resets;
delete from drift_baselines where kind = 'input';
alter table drift_baselines drop column features, drop column zeros, drop column stds, drop column means;
drop table refused_inputs;
alter table snapshots
    drop column features,
    drop column zeros;
