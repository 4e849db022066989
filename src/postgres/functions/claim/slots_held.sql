-- Slots of a task in hand; those of a set of totals are at most 8.
create or replace function sluice.slots_held(p_lanes bigint[], p_gate int, p_stream_gate int) returns smallint
language sql immutable as $$
  select (coalesce(cardinality(p_lanes), 0) + case when p_gate > 0 then 1 when p_gate < 0 then 8 else 0 end
    + case when p_stream_gate <> 0 then 1 else 0 end)::smallint
$$;
