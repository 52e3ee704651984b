-- Which alias also scores a share of a model's requests, beside the answer. Changes raise traffic_revision, too.
create table shadow_rules (
    model      text primary key,
    alias      text not null,
    percent    integer not null check (percent between 0 and 100),
    updated_at timestamptz not null,
    updated_by text not null
);

---- create above / drop below ----

drop table shadow_rules;
