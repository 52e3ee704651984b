-- What people keep about the platform, per tenant, and the sessions that let them in.

-- Encrypted SSO state and revoked password tokens, where DASHBOARD_SESSION_STORE=postgres.
-- key is the hex SHA-256 of the id: who reads the table can use none of it.
create table session_entries (
    key        text primary key,
    value      bytea not null,
    expires_at timestamptz not null
);
create index session_entries_expiry on session_entries (expires_at);

create table config_values (
    key        text primary key,
    value      text not null, -- of a secret: v1.<kid>.<nonce>.<ciphertext>
    secret     boolean not null,
    updated_at timestamptz not null default now(),
    updated_by text not null
);

create table flag_overrides (
    tenant     text not null,
    name       text not null,
    enabled    boolean not null,
    updated_at timestamptz not null default now(),
    updated_by text not null,
    primary key (tenant, name)
);

create table comments (
    id          uuid primary key,
    tenant      text not null,
    entity_type text not null,
    entity_id   text not null,
    author      text not null,
    author_name text,
    body        text not null, -- sanitized
    body_html   text not null, -- rendered and sanitized
    mentions    text[] not null,
    created_at  timestamptz not null default now(),
    deleted_at  timestamptz,
    deleted_by  text
);
create index comments_entity on comments (tenant, entity_type, entity_id, created_at, id);

create table snapshots (
    token_digest bytea primary key, -- SHA-256 of the token
    tenant       text not null,
    view         text not null, -- JSON, byte for byte as it was frozen
    created_by   text not null,
    created_at   timestamptz not null default now(),
    expires_at   timestamptz not null
);
create index snapshots_tenant on snapshots (tenant, expires_at);

-- One row per alert and firing: the same id fires again with another since.
create table alert_states (
    tenant      text not null,
    alert_id    text not null,
    since       timestamptz not null,
    source      text not null,
    severity    text not null,
    state       text not null check (state in ('firing', 'acknowledged', 'resolved')),
    title       text not null,
    labels      jsonb not null,
    acked_by    text,
    acked_at    timestamptz,
    resolved_at timestamptz,
    primary key (tenant, alert_id, since)
);
create index alert_states_open on alert_states (tenant, state);

-- When the control plane was asked for the alerts that were last applied, by this database's clock: an older
-- answer that another replica holds must not undo a newer one.
create table alert_readings (
    tenant  text primary key,
    read_at timestamptz not null
);

-- One use within 30 s each; the digest of the ticket, as for snapshots.
create table proxy_tickets (
    ticket_digest bytea primary key,
    grant_sealed  bytea not null,
    expires_at    timestamptz not null
);
