-- The results or the errors (p_what) of all items of an each, as a JSON list. Refuses more than p_max bytes, and
-- results that were too large to be stored. Runs under the settings of workflow_each.
create or replace function sluice.workflow_each_list(p_run bigint, p_node smallint, p_what text, p_max int) returns text
language plpgsql stable as $$
declare v_text text; v_bytes bigint; v_cut boolean;
begin
  -- Counted before they are put together: a hundred thousand large ones must not be in memory to be refused.
  select coalesce(sum(octet_length(d.outcome::text) + 1), 0),
    bool_or(p_what = 'results' and sluice.workflow_cut(d.outcome))
  into v_bytes, v_cut
  from sluice.workflow_task w
  cross join lateral (
    select outcome from sluice.done where id = w.id and (state = 'succeeded') = (p_what = 'results') limit 1
  ) d
  where w.run = p_run and w.node = p_node;
  if v_cut then
    perform sluice.refuse('result_truncated', 'the result of an item was too large to be stored');
  end if;
  if v_bytes > p_max then
    perform sluice.refuse('input_too_large', format(
      'the %s of all items have %s bytes together, but only %s are allowed', p_what, v_bytes, p_max));
  end if;
  if p_what = 'results' then
    select string_agg(coalesce(d.outcome::text, 'null'), ',' order by w.item) into v_text
    from sluice.workflow_task w
    left join lateral (select outcome from sluice.done where id = w.id and state = 'succeeded' limit 1) d on true
    where w.run = p_run and w.node = p_node;
  else
    select string_agg(
      '{"index":' || w.item
        || ',"state":"' || d.state::text
        || '","error":' || coalesce(d.outcome::text, 'null') || '}', ',' order by w.item)
    into v_text
    from sluice.workflow_task w
    cross join lateral (select outcome, state from sluice.done where id = w.id and state <> 'succeeded' limit 1) d
    where w.run = p_run and w.node = p_node;
  end if;
  return '[' || coalesce(v_text, '') || ']';
end $$;
