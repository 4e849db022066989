-- A node without tasks begins. Returns its state: over at once, or r when something must come first.
create or replace function sluice.workflow_begin(p_run bigint, p_node smallint) returns "char" language plpgsql as $$
declare s record; v_text text; v_outcome json; v_state "char" := 'r'; v_at timestamptz; v_now timestamptz := sluice.clock();
begin
  select k.*, r.bytes_max into s from sluice.workflow_run r join sluice.workflow_step k on k.graph = r.graph and k.node = p_node where r.id = p_run;
  begin
    if s.kind = 'w' then
      v_outcome := sluice.workflow_holds(sluice.workflow_render(p_run, s.over_parts, s.over_nodes, s.over_paths, s.bytes_max), s.test, s.test_value)::text::json;
      v_state := 's';
    elsif s.kind = 's' then
      if s.over_parts <> '{}' then
        v_text := sluice.workflow_render(p_run, s.over_parts, s.over_nodes, s.over_paths, s.bytes_max)::json #>> '{}';
        v_at := sluice.workflow_time(v_text);
        if v_at is null or v_at not between v_now - interval '100 years' and v_now + interval '100 years' then
          perform sluice.refuse('invalid_option', format('node %s cannot sleep until %s: a time is ISO text or milliseconds since 1970, within a hundred years', to_json(s.name),
            case when v_text is null then 'null (the reference leads nowhere, or to null)' else to_json(left(v_text, 100))::text end)); end if;
      else
        v_at := v_now + s.ms * interval '1 millisecond';
      end if;
      if v_at <= v_now then v_state := 's'; end if;
    else
      delete from sluice.workflow_event where n = (select e.n from sluice.workflow_event e where e.run = p_run and e.name = s.event order by e.n limit 1) returning payload into v_outcome;
      if found then v_state := 's';
      elsif s.ms is not null then v_at := v_now + s.ms * interval '1 millisecond';
      end if;
    end if;
  exception when sqlstate 'SLUIC' or data_exception or program_limit_exceeded then
    v_state := 'f';
    v_outcome := case when s.kind = 's' then sluice.workflow_error('invalid_option', sqlerrm) else sluice.workflow_caught(sqlstate, sqlerrm) end;
  end;
  if v_state = 'r' then
    if v_at is not null then
      insert into sluice.workflow_timer (run, node, due_at) values (p_run, p_node, v_at);
      perform sluice.look_by(v_at);
    end if;
  else
    update sluice.workflow_node set state = v_state, outcome = v_outcome, finished_at = v_now where run = p_run and node = p_node;
  end if;
  return v_state;
end $$;
