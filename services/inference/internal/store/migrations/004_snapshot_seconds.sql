-- How long the answer took. Null in rows written before, and by replicas that do not know it yet.
alter table snapshots add column seconds real;

---- create above / drop below ----

alter table snapshots drop column seconds;
