-- Does the next batch, of at most p_max tasks, of a cancel or a retry of this run, for callers that do not want to wait
-- for a keeper. Locks the run (workflow_lock_shared). Returns 'more': call again; 'waits': for running tasks, or for a
-- resume; 'over'.
create or replace function sluice.workflow_continue(p_run bigint, p_max int) returns text
language plpgsql set lock_timeout = '2s' /* settings: index plans */ as $$
declare v_paused boolean;
begin
  perform sluice.workflow_lock_shared(array[p_run]);
  select paused into v_paused from sluice.workflow_run where id = p_run and finished_at is null;
  if not found then
    return 'over';
  end if;
  perform sluice.workflow_halt_run(p_run, p_max);
  if not v_paused then
    perform sluice.workflow_again_run(p_run, p_max);
  end if;
  if exists (select from sluice.workflow_run where id = p_run and finished_at is not null) then
    return 'over';
  end if;
  return case
    when exists (select from sluice.workflow_halt where run = p_run and item is not null)
      or not v_paused and exists (
        select from sluice.workflow_again
        where run = p_run and item is not null and cardinality(pending) < p_max) then 'more'
    else 'waits' end;
end $$;
