-- The largest open size of a row that the trial ran; 0 for graphs that leave none open.
alter table model_trials add column length integer not null default 0;

---- create above / drop below ----

alter table model_trials drop column length;
