-- Free text of an entry, for a search by the beginnings of words. Punctuation of ASCII separates words, so that
-- retrain.requested and model:JPCP are found by each of their parts; the parser's own rules for hosts, paths and
-- addresses would keep them whole. A UUID is one word: its parts would be found by any short number. The bodies are standard SQL, which binds names at definition: an index is also
-- rebuilt where search_path is empty, as in a restore.
create function audit_plain(text text) returns text language sql immutable parallel safe
    return translate(regexp_replace(text, '([[:xdigit:]]{8})-([[:xdigit:]]{4})-([[:xdigit:]]{4})-([[:xdigit:]]{4})-([[:xdigit:]]{12})', '\1\2\3\4\5', 'g'),
        '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32));

create function audit_words(seq bigint, event_id uuid, source text, actor text, action text, target text, outcome text, request_id text, details json)
    returns tsvector language sql immutable parallel safe
    return to_tsvector('pg_catalog.simple'::regconfig, audit_plain(seq::text || ' ' || event_id::text || ' ' || source || ' ' || actor || ' ' || action || ' ' || target
        || ' ' || outcome || ' ' || coalesce(request_id, '') || ' ' || details::text));

-- Every word of a text, each as the beginning of a word; null, which matches nothing, if there is none.
create function audit_query(text text) returns tsquery language sql immutable parallel safe
    return to_tsquery('pg_catalog.simple'::regconfig, nullif(regexp_replace(trim(audit_plain(text)), '\s+', ':* & ', 'g'), '') || ':*');

create index audit_events_words on audit_events
    using gin (audit_words(seq, event_id, source, actor, action, target, outcome, request_id, details));
