-- What a lane may hold by its row: its own number, or its limit's. Where many lanes are looked at the same is written out.
create or replace function sluice.cap_of(p_cap int, p_limit int) returns int language sql stable as $$
  select coalesce(p_cap,
    (select coalesce(l.per_key_override, l.per_key_declared) from sluice.limits l where l.id = p_limit), 2147483647)
$$;
