-- The level over all measures, which alerts follow, beside that of z_score. Null in rows written before, and by
-- replicas that do not know it yet: then it is the status.
alter table drift_states add column overall text;

---- create above / drop below ----

alter table drift_states drop column overall;
