-- What stays known of a chain whatever its other tables say: the largest verified head, failed verifications and their
-- acknowledgements. Signed; the other copy is a file beside the signing key. Text, since the signature covers bytes.
create table audit_memory (
    tenant     text primary key,
    document   text        not null,
    updated_at timestamptz not null
);

-- An acknowledgement of such failures waits for a second person as other guarded changes do.
alter table guarded_changes drop constraint guarded_changes_kind_check,
    add constraint guarded_changes_kind_check check (kind in ('promotion_policy', 'modelrepo_config', 'auto_retrain', 'setting', 'audit_failure'));

---- create above / drop below ----

delete from guarded_changes where kind = 'audit_failure';
alter table guarded_changes drop constraint guarded_changes_kind_check,
    add constraint guarded_changes_kind_check check (kind in ('promotion_policy', 'modelrepo_config', 'auto_retrain', 'setting'));
drop table audit_memory;
