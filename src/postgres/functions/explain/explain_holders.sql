-- Describes the holders of a lane other than the task p_but, the first ones first. p_max: as in lane_holders. p_deep:
-- as in explain, for the first of them.
create or replace function sluice.explain_holders(p_lane bigint, p_max int, p_but bigint, p_deep boolean) returns json
language plpgsql stable as $$
begin
  return coalesce((
    select json_agg(sluice.explain_holder(h.id, h.state, h.since, h.worker, p_deep and h.n = 1) order by h.n)
    from (
      select h.*, row_number() over (order by h.since, h.id) as n
      from sluice.lane_holders(p_lane, p_max) h
      where h.id <> p_but) h), '[]');
end $$;
