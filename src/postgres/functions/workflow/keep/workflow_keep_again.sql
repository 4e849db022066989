-- Brings back at most p_max tasks that run again. A walk over their runs, from p_after on, so that runs whose tasks
-- cannot come back yet, however many, hold up no other. Locks the runs with SKIP LOCKED, then the lanes of all of them
-- by id, and waits for nothing after that. Runs under the settings of workflow_keep. Returns how many tasks came back,
-- where to go on (0: at the beginning), and whether some came back while there are runs that this round has not looked
-- at, so that the next call should follow at once.
create or replace function sluice.workflow_keep_again(
  p_max int, p_after bigint, out moved int, out after bigint, out more boolean
) language plpgsql as $$
declare v_runs bigint[]; v_run bigint; v_left int := p_max; v_from bigint; v_look bigint[];
begin
  moved := 0;
  after := 0;
  more := false;
  v_from := case when exists (select from sluice.workflow_again a where a.run > p_after) then p_after else 0 end;
  v_look := array(select a.run from sluice.workflow_again a where a.run > v_from order by a.run, a.node limit 100);
  if v_look = '{}' then
    return;
  end if;
  v_runs := array(
    select r.id from sluice.workflow_run r
    where r.id = any (v_look) and not r.paused order by r.id for no key update skip locked);
  -- guard: lanes of several runs by id -> test/postgres/workflow/again.test.ts: "a keeper that brings back several runs locks all their windows in one order"
  perform from sluice.lane l
  where l.id = any (array(
    select n.lane
    from sluice.workflow_again x
    join sluice.workflow_node n on n.run = x.run and n.node = x.node
    where /* guard:order */ x.run = any (v_runs) and x.item = -1 /* end */ and n.lane is not null))
  order by l.id for update;
  after := coalesce(v_look[100], 0);
  foreach v_run in array v_runs loop
    v_left := v_left - sluice.workflow_again_run(v_run, v_left);
    if v_left <= 0 then
      after := v_run;
      exit;
    end if;
  end loop;
  moved := p_max - v_left;
  more := v_left < p_max and (after > 0 or v_from > 0);
end $$;
