-- Puts off a node whose tasks could not be placed for a reason that may pass. It is tried again later, each time after
-- longer, and others have their turn; the tenth time it fails. Locks the node's row first and then the run, as every
-- placer does. Until then the row is only locked: a resume, which holds the run and finds the row, would wait for a row
-- that is changed. Returns false if another transaction holds the node or has placed it.
create or replace function sluice.workflow_put_off(p_run bigint, p_node smallint, p_code text, p_message text)
returns boolean language plpgsql as $$
declare v_tries int;
begin
  select u.tries + 1 into v_tries from sluice.workflow_unplaced u
  where u.run = p_run and u.node = p_node for update skip locked;
  if not found then
    return false;
  end if;
  -- guard: ten tries -> test/postgres/workflow/place.test.ts: "a node that cannot be placed for a transient reason is postponed, then fails"
  if /* guard:tries */ v_tries >= 10 /* end */ then
    return sluice.workflow_misplaced(p_run, p_node, sluice.workflow_error(p_code, format(
      'its tasks could not be created in %s tries; the last error: %s', v_tries, p_message)));
  end if;
  update sluice.workflow_unplaced u
  set tries = v_tries, due_at = sluice.clock() + sluice.workflow_backoff(u.tries)
  where u.run = p_run and u.node = p_node;
  return true;
end $$;
