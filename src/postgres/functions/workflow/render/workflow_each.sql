-- What an each came to: {results, errors, counts}, or what the path names of it. Of many results one is read alone.
create or replace function sluice.workflow_each(p_run bigint, p_node smallint, p_path text[], p_max int) returns text language plpgsql stable
/* settings: index plans */ as $$
declare v sluice.workflow_node; v_text text; v_bytes bigint; v_cut boolean; v_outcome json;
begin
  if cardinality(p_path) = 0 then
    return '{"results":' || sluice.workflow_each(p_run, p_node, array['results'], p_max) || ',"errors":' || sluice.workflow_each(p_run, p_node, array['errors'], p_max)
      || ',"counts":' || sluice.workflow_each(p_run, p_node, array['counts'], p_max) || '}';
  end if;
  if p_path[1] = 'counts' then
    select * into v from sluice.workflow_node where run = p_run and node = p_node;
    return coalesce((json_build_object('total', v.total, 'succeeded', v.succeeded, 'failed', v.failed, 'cancelled', v.cancelled) #> p_path[2:])::text, 'null');
  elsif p_path[1] = 'results' and cardinality(p_path) > 1 and p_path[2] ~ '^[0-9]{1,9}$' then
    select d.outcome into v_outcome from sluice.workflow_task w cross join lateral (select outcome from sluice.done where id = w.id and state = 's' limit 1) d
    where w.run = p_run and w.node = p_node and w.item = p_path[2]::int;
    if sluice.workflow_cut(v_outcome) then perform sluice.refuse('result_truncated', format('the result of item %s was too large to be stored', p_path[2])); end if;
    return coalesce((v_outcome #> p_path[3:])::text, 'null');
  elsif p_path[1] not in ('results', 'errors') then
    return 'null';
  end if;
  -- Counted before they are put together: a hundred thousand large ones must not be in memory to be refused.
  select coalesce(sum(octet_length(d.outcome::text) + 1), 0), bool_or(p_path[1] = 'results' and sluice.workflow_cut(d.outcome)) into v_bytes, v_cut
  from sluice.workflow_task w cross join lateral (select outcome from sluice.done where id = w.id and (state = 's') = (p_path[1] = 'results') limit 1) d
  where w.run = p_run and w.node = p_node;
  if v_cut then perform sluice.refuse('result_truncated', 'the result of an item was too large to be stored'); end if;
  if v_bytes > p_max then perform sluice.refuse('input_too_large', format('the %s of all items are %s bytes together, and %s are allowed', p_path[1], v_bytes, p_max)); end if;
  if p_path[1] = 'results' then
    select string_agg(coalesce(d.outcome::text, 'null'), ',' order by w.item) into v_text
    from sluice.workflow_task w left join lateral (select outcome from sluice.done where id = w.id and state = 's' limit 1) d on true
    where w.run = p_run and w.node = p_node;
  else
    select string_agg('{"index":' || w.item || ',"state":"' || case d.state when 'f' then 'failed' else 'cancelled' end || '","error":' || coalesce(d.outcome::text, 'null') || '}', ',' order by w.item) into v_text
    from sluice.workflow_task w cross join lateral (select outcome, state from sluice.done where id = w.id and state <> 's' limit 1) d
    where w.run = p_run and w.node = p_node;
  end if;
  v_text := '[' || coalesce(v_text, '') || ']';
  return case when cardinality(p_path) = 1 then v_text else coalesce((v_text::json #> p_path[2:])::text, 'null') end;
end $$;
