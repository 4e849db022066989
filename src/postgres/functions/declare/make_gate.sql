-- Creates the counter of a limit's total, if it has none. Its number is that of the limit, so a caller cannot choose
-- it.
create or replace function sluice.make_gate(p_limit int) returns void language plpgsql as $$
begin
  insert into sluice.gate (id, cap)
  select l.id, coalesce(l.total_override, l.total_declared)
  from sluice.limits l
  where l.id = p_limit and l.total_declared is not null
  on conflict (id) do nothing;
end $$;
