-- lock_gates for a step that needs the counter of one total and nothing else, which is most of them: room is what the
-- total can give, with its credits, and below 0 while more run than a lowered number allows. Null if another
-- transaction holds the counter or a slot is kept: then lock_gates decides. The lock is the only one of a counter that
-- such a step takes, and it waits for nothing after it.
create or replace function sluice.lock_total(p_gate int, out room int, out absorbed int, out full_until timestamptz)
language plpgsql as $$
declare v_first timestamptz; v_last timestamptz;
begin
  -- guard: the counter of one total is locked -> test/postgres/attacks.test.ts: "attack 7: slots reused inside a step respect a lowered limit"
  select g.cap - g.used, g.full_at into room, full_until from sluice.gate g
  where g.id = p_gate and g.kept_for is null /* guard:lock */ for update skip locked /* end */;
  if not found then return; end if;
  with gone as (delete from sluice.credit c where c.gate = p_gate returning c.n, c.at)
  select coalesce(sum(n), 0), min(at), max(at) into absorbed, v_first, v_last from gone;
  -- As in full_until.
  if room + absorbed <= 0 then full_until := 'infinity';
  elsif room = 0 then full_until := v_first;
  elsif room < 0 then full_until := v_last; end if;
  room := room + absorbed;
end $$;
