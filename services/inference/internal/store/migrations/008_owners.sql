-- Which tenant each model belongs to, as the control plane last said: what holds while it is away.
create table model_owners (
    model  text primary key,
    tenant text not null
);

---- create above / drop below ----

drop table model_owners;
