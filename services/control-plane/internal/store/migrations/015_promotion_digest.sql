-- The digest of the files that a promotion asks for: those who decide it approve no others. Of promotions from before,
-- the first attempt to approve records it.
alter table promotions add column digest text;

---- create above / drop below ----

alter table promotions drop column digest;
