-- Streams of other live workers that hold tasks of these gates: a slot may be worth more there (attack 11). capacity:
-- how many tasks those workers can take. A stream that no worker serves, or only workers that claim no more, does not
-- count: the slot would lie idle.
create or replace function sluice.rivals(p_gates int[], p_streams int[], out streams int[], out capacity int[])
language plpgsql as $$
begin
  -- The common case, a limit of one type or of types that we all serve, is decided by the index alone.
  if not exists (
      select from sluice.gate_stream gs where gs.gate = any (p_gates) and gs.stream <> all (p_streams)) then
    return;
  end if;
  select array_agg(x.stream), array_agg(x.capacity) into streams, capacity from (
    select gs.stream, w.capacity from (
      select distinct g.stream from sluice.gate_stream g
      where g.gate = any (p_gates) and g.stream <> all (p_streams)) gs
    cross join lateral (
      select least(coalesce(sum(/* guard:room */ w.capacity_available /* end */), /* guard:nobody */ 0 /* end */),
        sluice.no_limit())::int as capacity
      from sluice.worker w
      where /* guard:leaving */ not w.draining and /* end */ w.pressure <> 'stopped' and w.streams @> array[gs.stream]
        /* guard:alive */ and w.expires_at > sluice.clock() /* end */) w
    where w.capacity > 0) x;
end $$;
