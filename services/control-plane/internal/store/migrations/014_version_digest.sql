-- The digest of a version's files when it was reported: the approval of its training run stands for no others.
alter table versions add column digest text;

---- create above / drop below ----

alter table versions drop column digest;
