-- The report about a search that took long or began at spots: how many milliseconds it took, and where the heads were.
create or replace function sluice.search_report(p_sources sluice.source[], p_look timestamptz) returns sluice.claimed
language plpgsql as $$
begin
  return sluice.step_report(json_build_object(
    'searchMs', (extract(epoch from sluice.clock() - p_look) * 1000)::int,
    'heads', coalesce((
      select json_agg(json_build_array(x.stream, x.gate, x.rank, x.turn::text)) from unnest(p_sources) x), '[]')));
end $$;
