-- The digest of the files that were admitted with an alias: inference opens no others, whatever the tracker says later.
alter table alias_moves add column digest text;
alter table alias_history add column digest text;

-- A move of Production past the gate opens a promotion in the mover's name.
alter table promotions drop constraint promotions_origin_check;
alter table promotions add constraint promotions_origin_check check (origin in ('request', 'ladder', 'outside'));

---- create above / drop below ----

delete from approvals where promotion_id in (select id from promotions where origin = 'outside');
delete from promotions where origin = 'outside';
alter table promotions drop constraint promotions_origin_check;
alter table promotions add constraint promotions_origin_check check (origin in ('request', 'ladder'));
alter table alias_history drop column digest;
alter table alias_moves drop column digest;
