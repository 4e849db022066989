-- Returns the gate of a task with these totals: 0 without totals, the total itself for one, else a set (gate_set).
-- A set is usually created by a deploy. A set that code decides by input is created by the first enqueue that needs
-- it, in a transaction that may stay open for minutes. Other enqueues then create the set again and wait for nothing;
-- once several are visible, the oldest is used.
create or replace function sluice.gate_of(p_totals int[]) returns int language plpgsql as $$
declare
  v_id int;
begin
  if coalesce(cardinality(p_totals), 0) = 0 then return 0; end if;
  if cardinality(p_totals) = 1 then return p_totals[1]; end if;
  select id into v_id from sluice.gate_set where gates = p_totals order by id desc limit 1;
  -- guard: a new set waits for nobody -> test/postgres/attacks.test.ts: "a new set of totals in an open transaction blocks no session that needs the set"
  if not found then
    /* guard:set */ insert /* end */ into sluice.gate_set (gates) values (p_totals) returning id into v_id;
    insert into sluice.gate_member (total, gate) select t, v_id from unnest(p_totals) t;
  end if;
  return v_id;
end $$;
