-- The capacity of a lane, given the cap and the limit of its row: its own cap, or the number per key of its limit.
-- Statements that read many lanes write this out instead of calling it.
create or replace function sluice.cap_of(p_cap int, p_limit int) returns int language sql stable as $$
  select coalesce(
    p_cap,
    (select coalesce(l.per_key_override, l.per_key_declared) from sluice.limits l where l.id = p_limit),
    sluice.no_limit())
$$;
