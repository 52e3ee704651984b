-- Fences come from one sequence, so that rows of leases need not stay for them. It begins above all
-- that were given.
create sequence coord_fence;
select setval('coord_fence', coalesce(max(fence), 0) + 1) from coord_lease;
create index coord_lease_expires on coord_lease (expires_at);

---- create above / drop below ----

drop index coord_lease_expires;
drop sequence coord_fence;
