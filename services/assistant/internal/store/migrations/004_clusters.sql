-- Which cluster a session and a proposed write are of, by the name of its context; empty where no names are configured. A
-- turn is of its session, and a session never changes.
alter table sessions add column cluster text not null default '';
alter table actions add column cluster text not null default '';
