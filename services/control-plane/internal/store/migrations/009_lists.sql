-- Jobs of one model: a page of them must not walk those of all others.
create index jobs_model on jobs (model_id, id desc);

---- create above / drop below ----

drop index jobs_model;
