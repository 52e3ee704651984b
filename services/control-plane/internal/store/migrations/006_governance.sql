select 1;

---- create above / drop below ----

select 1;
