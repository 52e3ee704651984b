-- Input drift. A request that was refused because an input is not finite has a row without prediction and
-- label: it says that the producer is broken, and predictions are compared without it.
alter table snapshots
    drop constraint snapshots_check,
    add column zeros boolean, -- whether all numeric inputs were zero; null in rows written before
    add column features json; -- the scalar inputs by name; null in rows written before and for wide models

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
delete from snapshots where prediction is null and label is null;
alter table snapshots
    drop column features,
    drop column zeros,
    add constraint snapshots_check check (prediction is not null or label is not null);
