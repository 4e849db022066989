-- Streams with many totals. A type whose tasks are spread over thousands of groups has thousands of kinds (a stream and
-- a gate) in `gated`, most of them at a full total. A claim that walked them would cost more with every full group, or
-- miss the one that has room. So claims find open kinds through `waiting_kind`:
--
--   - Every insert into gated appends a row (trigger below) with blocker 0: no claim has examined it yet.
--   - A claim examines rows with blocker 0. It deletes those without tasks. It gives those at a full total that total
--     as blocker: the next claims skip them. Rows of kinds with room stay as they are.
--   - A slot that comes back appends a row to `returned`. The next claim resets rows that this total blocks to
--     blocker 0, the first by (rank, turn), a few more than there are slots. The note stays while the total has room
--     and blocks anything.
--
-- Why no wake-up is lost. A claim may find a total full, and the slot may come back before that claim commits the
-- blocker, so that the claim that handles `returned` sees nothing blocked. Therefore a new blocker is `fresh`, and the
-- next claim that sees the row checks the total once more. It reads a later snapshot than the commit of the blocker:
-- either it sees the slot, or the slot comes back later and its row in `returned` meets a visible blocker. A row
-- that another claim has locked stays blocked, so the note for it stays too.
--
-- All rows here are hints, appended without a lock and taken with SKIP LOCKED, so no claim waits for another and a
-- user's open transaction blocks nothing. Notes are written for the streams that are known to use a total at that time.
-- The keeper repairs what that misses (note_kinds): kinds without a row, and blockers that have room.
create or replace function sluice.note_waiting() returns trigger language plpgsql as $$
begin
  if exists (select from sluice.stream where many) then
    -- guard: kinds that wait are noted -> test/postgres/kinds.test.ts: "a task of a free group is claimed immediately beside thousands of full groups"
    insert into sluice.waiting_kind (stream, gate)
    select distinct a.stream, a.gate
    from added a
    join sluice.stream s on s.id = a.stream and /* guard:many */ s.many /* end */;
  end if;
  return null;
end $$;

create or replace trigger gated_noted after insert on sluice.gated referencing new table as added
for each statement execute function sluice.note_waiting();
