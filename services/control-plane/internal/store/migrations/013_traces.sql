-- The W3C trace context that led to a record, so that work on it later goes on in the same trace.
alter table approvals add column traceparent text;
alter table versions add column traceparent text;
alter table alias_moves add column traceparent text;

---- create above / drop below ----

alter table alias_moves drop column traceparent;
alter table versions drop column traceparent;
alter table approvals drop column traceparent;
