-- One push per commit and branch, the newest: a forge may deliver the same one again under any number of delivery ids.
update push_deliveries d set push_id = newest.id
from pushes p, lateral (select max(n.id) as id from pushes n where n.commit_sha = p.commit_sha and n.branch = p.branch) newest
where p.id = d.push_id and newest.id <> d.push_id;
update pushes p set requesters = told.requesters, person_unknown = told.person_unknown
from (
    select commit_sha, branch, bool_or(person_unknown) as person_unknown,
        coalesce((select array_agg(distinct r) from pushes o, unnest(o.requesters) r where o.commit_sha = n.commit_sha and o.branch = n.branch), '{}') as requesters
    from pushes n group by commit_sha, branch having count(*) > 1
) told
where p.commit_sha = told.commit_sha and p.branch = told.branch;
delete from pushes p using pushes n where n.commit_sha = p.commit_sha and n.branch = p.branch and n.id > p.id;
drop index pushes_commit;
create unique index pushes_commit on pushes (commit_sha, branch);

---- create above / drop below ----

drop index pushes_commit;
create index pushes_commit on pushes (commit_sha, id desc);
