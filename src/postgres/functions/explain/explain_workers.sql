-- Counts the workers that could claim from these streams, as of their last heartbeats. live: those not leaving. silent:
-- those that have missed a heartbeat; heard_at: the last one of them. stopped: those that claim nothing for another
-- reason than too few free places; pressure: their reasons. capacity, available: of the others.
create or replace function sluice.explain_workers(
  p_streams int[],
  out live int, out leaving int, out capacity int, out available int, out stopped int, out pressure text[],
  out silent int, out heard_at timestamptz)
language sql stable as $$
  with able as (
    select w.capacity_max,
      case when w.pressure = 'stopped' then 0 else capacity_available end as available,
      w.pressure_reasons,
      expires_at - lease_ms * interval '1 ms' as heard_at,
      case
        when draining then 'leaving'
        when sluice.is_silent(expires_at, lease_ms) then 'silent'
        when w.pressure = 'stopped' and array_remove(pressure_reasons, 'permits') <> '{}' then 'stopped'
        else 'works'
      end as how
    from sluice.worker w
    where streams && p_streams and expires_at > sluice.clock()
  )
  select count(*) filter (where how <> 'leaving'),
    count(*) filter (where how = 'leaving'),
    coalesce(sum(capacity_max) filter (where how = 'works'), 0)::int,
    coalesce(sum(able.available) filter (where how = 'works'), 0)::int,
    count(*) filter (where how = 'stopped'),
    (select coalesce(array_agg(distinct r order by r), '{}')
      from able a
      cross join lateral unnest(array_remove(a.pressure_reasons, 'permits')) r
      where a.how = 'stopped'),
    count(*) filter (where how = 'silent'),
    max(able.heard_at) filter (where how = 'silent')
  from able
$$;
