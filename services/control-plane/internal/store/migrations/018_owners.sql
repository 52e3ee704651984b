-- Which tenant a model belongs to, as its model.yaml says; kept when the model leaves the repository. What follows from
-- a model (policy, alias history, auto-retrain, freshness, pushes that touch it) belongs to the same tenant.
create table model_owners (
    model_id   text primary key,
    tenant     text        not null,
    updated_at timestamptz not null
);
create function owner_of(model text) returns text language sql stable as
    $$ select coalesce((select o.tenant from model_owners o where o.model_id = model), 'default') $$;

-- Whether a tenant sees what belongs to a model: the owner, and the platform's own services, whose tenant is platform.
create function owned_by(model text, tenant text) returns boolean language sql stable as
    $$ select tenant = 'platform' or owner_of(model) = tenant $$;

---- create above / drop below ----

drop function owned_by(text, text);
drop function owner_of(text);
drop table model_owners;
