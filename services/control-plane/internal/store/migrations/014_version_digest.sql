-- The digest of a version's files when it was reported: the approval of its training run stands for no others.
alter table versions add column digest text;
-- Whether who reported the version may say which run produced it: a report can come before the run is recorded.
alter table versions add column binds boolean not null default false;

---- create above / drop below ----

alter table versions drop column binds;
alter table versions drop column digest;
