-- The versions that the control plane admitted to Production, as it last said: what this service may load while the
-- control plane is away. digest is null where nobody named one.
create table admissions (
    model   text primary key,
    version text not null,
    digest  text
);

---- create above / drop below ----

drop table admissions;
