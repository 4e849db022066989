-- The value of an each as JSON text: {results, errors, counts}, or what the path names of it. A single result is read
-- alone.
create or replace function sluice.workflow_each(p_run bigint, p_node smallint, p_path text[], p_max int) returns text
language plpgsql stable /* settings: index plans */ as $$
declare v sluice.workflow_node; v_text text; v_outcome json;
begin
  if cardinality(p_path) = 0 then
    return '{"results":' || sluice.workflow_each(p_run, p_node, array['results'], p_max)
      || ',"errors":' || sluice.workflow_each(p_run, p_node, array['errors'], p_max)
      || ',"counts":' || sluice.workflow_each(p_run, p_node, array['counts'], p_max) || '}';
  end if;
  if p_path[1] = 'counts' then
    select * into v from sluice.workflow_node where run = p_run and node = p_node;
    return coalesce((
      json_build_object('total', v.total, 'succeeded', v.succeeded, 'failed', v.failed, 'cancelled', v.cancelled)
        #> p_path[2:])::text, 'null');
  elsif p_path[1] = 'results' and cardinality(p_path) > 1 and p_path[2] ~ '^[0-9]{1,9}$' then
    select d.outcome into v_outcome
    from sluice.workflow_task w
    cross join lateral (select outcome from sluice.done where id = w.id and state = 'succeeded' limit 1) d
    where w.run = p_run and w.node = p_node and w.item = p_path[2]::int;
    if sluice.workflow_cut(v_outcome) then
      perform sluice.refuse('result_truncated', format(
        'the result of item %s was too large to be stored', p_path[2]));
    end if;
    return coalesce((v_outcome #> p_path[3:])::text, 'null');
  elsif p_path[1] not in ('results', 'errors') then
    return 'null';
  end if;
  v_text := sluice.workflow_each_list(p_run, p_node, p_path[1], p_max);
  return case
    when cardinality(p_path) = 1 then v_text
    else coalesce((v_text::json #> p_path[2:])::text, 'null') end;
end $$;
