-- The keeper's work on lanes: notes that no claim has read, limits that were changed or lowered, streams that no worker
-- serves, slots that lie idle. Returns how much there was to do. Takes the barrier, shared, then locks as in a step.
create or replace function sluice.keep_lanes(p_max int) returns int language plpgsql as $$
declare
  v_n int := 0;
begin
  perform sluice.barrier_shared();
  if exists (select from sluice.changed) then v_n := sluice.follow_limit(p_max); end if;
  if exists (select from sluice.lowered) then
    select v_n /* guard:shed */ + s.shed + s.cleared into v_n from sluice.shed() s /* end */;
  end if;
  if exists (select from sluice.stream where laned) then v_n := v_n + sluice.park_closed_kinds(p_max); end if;
  if exists (select from sluice.parked) or exists (select from sluice.stuck) then
    v_n := v_n + sluice.unpark(p_max);
  end if;
  if exists (select from sluice.stream where laned) then v_n := v_n + sluice.yield(p_max); end if;
  -- After kinds may have come unstuck, so that lanes postponed for them are admitted now.
  if exists (select from sluice.postponed) then perform sluice.recall(p_max); end if;
  v_n := v_n + sluice.admit_dirty(p_max);
  if exists (select from sluice.stream where many) then
    perform sluice.note_kinds((random() * 1000000000)::bigint);
  end if;
  perform sluice.keep_slots();
  return v_n;
end $$;
