-- Appends notes that slots of these totals came back, or that their number was raised, for streams with many totals.
create or replace function sluice.note_returned(p_totals int[]) returns void language plpgsql as $$
begin
  if not exists (select from sluice.stream where many) then return; end if;
  -- guard: slots that come back are noted -> test/postgres/kinds.test.ts: "a slot returned to one of thousands of full groups starts its next task: %s"
  insert into sluice.returned (stream, total)
  select gs.stream, gs.gate
  from sluice.gate_stream gs
  join sluice.stream s on s.id = gs.stream and s.many
  where /* guard:noted */ gs.gate = any (p_totals) /* end */;
end $$;
