-- The only source of a stream, if all that waits stands at one gate, of which this step has just freed slots. Null if
-- there is more to look at.
create or replace function sluice.sole_gated(p_stream int, p_own_gate int, p_own_n int) returns sluice.source
language plpgsql as $$
declare v_sole sluice.source;
begin
  select st.id, p_own_gate, 0, h.rank, h.turn, h.id,
    least(sluice.no_limit(), /* guard:cap */ g.cap::bigint - g.used /* end */
    + coalesce((select sum(c.n) from sluice.credit c where c.gate = g.id), 0) + p_own_n), sluice.no_limit()
  into v_sole from sluice.stream st
  cross join lateral (
    select r.rank, r.turn, r.id from sluice.gated r
    where r.stream = st.id and r.gate = p_own_gate order by r.rank, r.turn limit 1) h
  cross join lateral (
    select k.id, k.cap, k.used from sluice.gate k where k.id = p_own_gate and k.kept_for is null limit 1) g
  where st.id = p_stream /* guard:paused */ and not st.paused /* end */ and st.gate = any (array[0, p_own_gate])
    and not exists (select from sluice.ready r where r.stream = p_stream)
    and not exists (select from sluice.gated r where r.stream = p_stream and r.gate < p_own_gate)
    and not exists (select from sluice.gated r where r.stream = p_stream and r.gate > p_own_gate);
  return v_sole;
end $$;
