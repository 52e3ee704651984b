-- The artifacts that have passed their trial, so that a restart does not try them again.
create table model_trials (
    digest     text primary key, -- of the artifact
    conditions text not null, -- what the verdict depends on beside the files: the library, the limits, how runs are made
    rows       integer not null, -- of one run, at most
    used_at    timestamptz not null
);

---- create above / drop below ----

drop table model_trials;
