-- Creates the tasks of one each that needs no code but has many items. Takes the row of the each with SKIP LOCKED, and
-- the run's lock last, in workflow_placed. Returns false if there is none to place.
create or replace function sluice.workflow_place_many() returns boolean language plpgsql as $$
declare
  u sluice.workflow_unplaced; n sluice.workflow_node; s record; t record; v record;
  v_wanted boolean; v_state text; v_message text;
begin
  select * into u from sluice.workflow_unplaced x
  where not x.in_code and x.due_at <= sluice.clock()
  order by x.due_at, x.run, x.node limit 1 for update skip locked;
  if not found then
    return false;
  end if;
  select * into n from sluice.workflow_node x where x.run = u.run and x.node = u.node;
  if n.state is distinct from 'placing' then
    perform sluice.workflow_stale(u.run, u.node);
    return true;
  end if;
  select * into t from sluice.workflow_terms(u.stream);
  if t.in_code then
    -- The type has got an order or keys since then.
    update sluice.workflow_unplaced x set in_code = true where x.run = u.run and x.node = u.node;
    return true;
  end if;
  select k.* into s
  from sluice.workflow_run r
  join sluice.workflow_step k on k.graph = r.graph and k.node = u.node
  where r.id = u.run;
  begin
    select * into v from sluice.workflow_items(u.run, u.node);
    perform sluice.workflow_fan(
      u.run, u.node, u.stream, n.lane, coalesce(s.rank, t.rank), coalesce(s.attempts, t.attempts), t.gate,
      v.items, v.parts, v.kinds, v.paths, v.bytes_max);
    v_wanted := sluice.workflow_placed(u.run, u.node);
    -- What was placed is rolled back; the row is deleted by the next take.
    if not v_wanted then
      raise exception using errcode = 'SLUIC', message = 'not wanted';
    end if;
  exception when others or query_canceled then
    get stacked diagnostics v_state = returned_sqlstate, v_message = message_text;
  end;
  if v_wanted is not null then
    return true;
  end if;
  if v_state = 'SLUIC' or v_state like '22%' or v_state like '54%' then
    perform sluice.workflow_misplaced(u.run, u.node, sluice.workflow_caught(v_state, v_message));
  else
    perform sluice.workflow_put_off(u.run, u.node, 'database_busy', v_message);
  end if;
  return true;
end $$;
