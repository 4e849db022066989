-- Some gate to begin with, by a random token.
create or replace function sluice.random_gate(p_token bigint) returns int language plpgsql stable as $$
declare v_low int := (select min(id) from sluice.gate_set); v_high int := (select max(id) from sluice.limits);
begin
  v_low := coalesce(v_low, 0); v_high := coalesce(v_high, 0);
  return v_low + ((p_token >> 2) % (v_high - v_low + 1))::int;
end $$;
