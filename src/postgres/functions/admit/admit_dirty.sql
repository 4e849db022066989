-- Looks at the notes, for callers that have nothing to settle or claim.
create or replace function sluice.admit_dirty(p_max int) returns int language plpgsql /* settings: index plans */ as $$
declare v record;
begin
  perform sluice.barrier_shared();
  select * into v from sluice.take_dirty(p_max);
  if v.joined is null and v.freed is null then return 0; end if;
  perform sluice.ring_streams(sluice.admit(v.freed, v.freed_n, v.joined, v.joined_limits));
  return coalesce(cardinality(v.joined), 0) + coalesce(cardinality(v.freed), 0);
end $$;
