-- Values of references, and texts made of them. What a run has come to so far is kept as long as the run, so
-- nothing is copied: a value is read where it stands.

-- A node fails with this where its input cannot be made; never a run that stands still.
create function sluice.workflow_error(p_code text, p_message text) returns json language sql immutable as
$$ select json_build_object('name', 'SluiceError', 'code', p_code, 'message', p_message) $$;

-- Whether a result was too large to be stored, and this is the note that stands for it. The blank tells: no
-- handler's own result is written with one there, whatever is in it (src/core/storable.ts), and json keeps its text.
create function sluice.workflow_cut(p_outcome json) returns boolean language sql immutable as
$$ select p_outcome::text like '{ "truncated":true,"bytes":%' $$;

-- How many bytes the list of an each's items may have. It may be longer than what one task may be given.
create function sluice.workflow_list_bytes_max() returns int language sql immutable as $$ select 67108864 $$;

-- What an each came to: {results, errors, counts}, or what the path names of it. Of many results one is read alone.
create function sluice.workflow_each(p_run bigint, p_node smallint, p_path text[], p_max int) returns text language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
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

-- The value of one reference as JSON text; a path that leads nowhere is null. Of a node that failed or was
-- cancelled there is only {"error": ...}, of an each that had begun also what its items came to.
create function sluice.workflow_value(p_run bigint, p_node smallint, p_path text[], p_max int) returns text language plpgsql stable as $$
declare v_kind "char"; v_state "char"; v_outcome json; v_task bigint; v_total int;
begin
  if p_node = 0 then
    return coalesce((select (r.input #> p_path)::text from sluice.workflow_run r where r.id = p_run), 'null');
  end if;
  select n.kind, n.state, n.task, n.total, coalesce(n.outcome, (select d.outcome from sluice.done d where d.id = n.task limit 1)) into v_kind, v_state, v_task, v_total, v_outcome
  from sluice.workflow_node n where n.run = p_run and n.node = p_node;
  if v_state in ('f', 'c') then
    if v_kind = 'e' and v_total > 0 and (cardinality(p_path) = 0 or p_path[1] <> 'error') then return sluice.workflow_each(p_run, p_node, p_path, p_max); end if;
    return coalesce((json_build_object('error', coalesce(v_outcome, '{}'::json)) #> p_path)::text, 'null');
  elsif v_state = 's' and v_kind = 'e' then
    return sluice.workflow_each(p_run, p_node, p_path, p_max);
  elsif v_state = 's' then
    if v_task is not null and sluice.workflow_cut(v_outcome) then
      perform sluice.refuse('result_truncated', format('the result of task %s was too large to be stored', v_task)); end if;
    return coalesce((v_outcome #> p_path)::text, 'null');
  end if;
  return 'null';
end $$;

-- What is too large is told before it is put together: a thousand references to large results must not be in memory, and
-- beyond 1 GB no text could hold them, so that the settle that joins them would fail for ever.
create function sluice.workflow_too_large(p_bytes bigint, p_max int) returns void language plpgsql as $$
begin
  perform sluice.refuse('input_too_large', format('what is to be rendered is at least %s bytes, and %s are allowed', p_bytes, p_max));
end $$;

-- A time as a sleep takes it: milliseconds since 1970, or ISO text, which means UTC where it names no offset. Null
-- for other words: what the server makes of 'tomorrow' or of 1/2/2030 depends on the session and on the day.
create function sluice.workflow_time(p_text text) returns timestamptz language plpgsql stable set timezone = 'UTC' as $$
begin
  return case when p_text ~ '^-?[0-9]{1,15}([.][0-9]+)?$' then to_timestamp(p_text::numeric / 1000)
    when p_text ~* '^[0-9]{4}-[0-9]{2}-[0-9]{2}([t ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(z|[+-][0-9]{2}(:?[0-9]{2})?)?)?$' then p_text::timestamptz end;
end $$;

create function sluice.workflow_fit(p_text text, p_max int) returns text language plpgsql immutable as $$
begin
  if octet_length(p_text) > p_max then
    perform sluice.refuse('input_too_large', format('what was rendered is %s bytes, and %s are allowed', octet_length(p_text), p_max)); end if;
  return p_text;
end $$;

create function sluice.workflow_render(p_run bigint, p_parts text[], p_nodes smallint[], p_paths text[], p_max int) returns text language plpgsql stable as $$
declare v_texts text[] := p_parts[1:1]; v_value text; v_bytes bigint := octet_length(p_parts[1]);
begin
  for i in 1..cardinality(p_nodes) loop
    v_value := sluice.workflow_value(p_run, p_nodes[i], p_paths[i]::text[], p_max);
    -- guard: counted before it is joined -> test/postgres/workflow/many.test.ts: "an input that is too large is refused before all of it is read"
    v_bytes := v_bytes + octet_length(v_value) + octet_length(p_parts[i + 1]);
    if v_bytes > p_max then perform sluice.workflow_too_large(v_bytes, p_max); end if;
    v_texts := v_texts || v_value || p_parts[i + 1];
  end loop;
  return sluice.workflow_fit(array_to_string(v_texts, ''), p_max);
end $$;

-- Whether the condition of a `when` holds.
create function sluice.workflow_holds(p_text text, p_test text, p_value json) returns boolean language plpgsql immutable as $$
declare v json := p_text::json; v_type text := json_typeof(v);
begin
  return case p_test
    when 'exists' then v_type <> 'null'
    when 'equals' then v::jsonb = coalesce(p_value::jsonb, 'null')
    when 'differs' then v::jsonb <> coalesce(p_value::jsonb, 'null')
    when 'above' then v_type = 'number' and json_typeof(p_value) = 'number' and v::text::numeric > p_value::text::numeric
    when 'below' then v_type = 'number' and json_typeof(p_value) = 'number' and v::text::numeric < p_value::text::numeric
    else case v_type when 'null' then false when 'boolean' then v::text::boolean when 'number' then v::text::numeric <> 0 when 'string' then v #>> '{}' <> '' else true end
  end;
end $$;

-- How tasks of a stream are made here: in_code when only code can tell their order or their keys.
create function sluice.workflow_terms(p_stream int, out in_code boolean, out rank smallint, out attempts smallint, out gate int) language plpgsql as $$
declare v sluice.contract; v_totals int[]; v_keyed boolean;
begin
  select c.* into v from sluice.stream s join sluice.contract c on c.type = s.type where s.id = p_stream;
  in_code := not found or v.limit_ids is null or v.ordered;
  rank := -v.priority; attempts := v.attempts_max; gate := 0;
  if in_code or v.limit_ids = '{}' then return; end if;
  select array_agg(l.id order by l.id) filter (where l.total_declared is not null), bool_or(l.per_key_declared is not null) into v_totals, v_keyed
  from sluice.limits l where l.id = any (v.limit_ids);
  in_code := coalesce(v_keyed, false);
  if not in_code then gate := sluice.gate_of(v_totals); end if;
end $$;
