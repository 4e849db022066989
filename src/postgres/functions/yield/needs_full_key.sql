-- Returns whether one of the keys that a task needs later is full and its kind is stuck for that reason.
create or replace function sluice.needs_full_key(p_stream int, p_gate int, p_later bigint[]) returns boolean
language plpgsql stable /* settings: index plans */ as $$
begin
  if p_later = '{}' then return false; end if;
  -- guard: what needs a full key next is passed over -> test/postgres/yield.test.ts: "tasks of one type with different second keys do not block each other"
  return exists (
    select from sluice.stuck s
    where s.stream = p_stream and s.gate = any (array[0, p_gate])
      and s.lane = any (p_later)
      and /* guard:next-key */ not sluice.has_room(s.lane) /* end */);
end $$;
