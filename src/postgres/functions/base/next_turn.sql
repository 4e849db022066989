-- Draws the next turn: after all tasks that exist now, before all that come later. p_last: the last task id issued.
create or replace function sluice.next_turn(p_last bigint) returns bigint language sql volatile as $$
  select (p_last << sluice.turn_bits()) + nextval('sluice.turn')
$$;
