create or replace function sluice.own_turn(p_id bigint) returns bigint language sql immutable parallel safe as $$ select p_id << 20 $$;
