-- Counts the tasks that wait at a total, up to 1,000: those of its gate or of a set with it, and those of a type whose
-- own limit it is.
create or replace function sluice.total_waiting(p_total int) returns int language sql stable as $$
  select count(*)::int
  from (
    select
    from sluice.gate_stream st
    cross join lateral (
      select p_total as gate
      union all
      select m.gate from (select x.gate from sluice.gate_member x where x.total = p_total limit 1000) m) t
    cross join lateral (select from sluice.gated w where w.stream = st.stream and w.gate = t.gate limit 1000) w
    where st.gate = p_total
    union all
    select
    from sluice.stream st
    cross join lateral (select from sluice.ready r where r.stream = st.id limit 1000) r
    where st.gate = p_total
    limit 1000) w
$$;
