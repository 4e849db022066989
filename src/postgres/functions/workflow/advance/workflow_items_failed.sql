-- The error of an each that failed: how many of its items failed, and the message of the first one. p_old, the error so
-- far, has that message unless the first is the task p_first.
create or replace function sluice.workflow_items_failed(p_failed int, p_total int, p_old json, p_first bigint)
returns json language plpgsql stable as $$
declare
  v_first text := coalesce(
    p_old -> 'cause' ->> 'message', (select d.outcome ->> 'message' from sluice.done d where d.id = p_first limit 1));
begin
  return json_build_object(
    'name', 'SluiceError',
    'code', 'items_failed',
    'message', p_failed || ' of ' || p_total || case when p_total = 1 then ' item' else ' items' end || ' failed'
      || coalesce(': ' || v_first, ''),
    'cause', json_build_object('message', v_first));
end $$;
