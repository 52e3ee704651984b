-- One state of many: pages of what is pending must not walk what was decided.
create index approvals_status on approvals (tenant, status, id desc);

---- create above / drop below ----

drop index approvals_status;
