-- p_last: the last id that was given to a task.
create or replace function sluice.next_turn(p_last bigint) returns bigint language sql volatile as $$ select (p_last << 20) + nextval('sluice.turn') $$;
