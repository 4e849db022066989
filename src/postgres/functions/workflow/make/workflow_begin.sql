-- Begins a node without tasks: a when, a sleep or a waitFor. The caller holds the run's lock. Returns its
-- state: succeeded or failed if it is over at once, running if it waits for a timer or an event.
create or replace function sluice.workflow_begin(p_run bigint, p_node smallint) returns sluice.state
language plpgsql as $$
declare
  s record; v_outcome json; v_state sluice.state := 'running'; v_at timestamptz; v_now timestamptz := sluice.clock();
begin
  select k.*, r.bytes_max into s
  from sluice.workflow_run r
  join sluice.workflow_step k on k.graph = r.graph and k.node = p_node
  where r.id = p_run;
  begin
    if s.kind = 'when' then
      v_outcome := sluice.workflow_holds(
        sluice.workflow_render(p_run, s.over_parts, s.over_nodes, s.over_paths, s.bytes_max), s.test, s.test_value
      )::text::json;
      v_state := 'succeeded';
    elsif s.kind = 'sleep' then
      v_at := case
        when s.over_parts <> '{}' then sluice.workflow_until(
          s.name, sluice.workflow_render(p_run, s.over_parts, s.over_nodes, s.over_paths, s.bytes_max), v_now)
        else v_now + s.ms * interval '1 millisecond' end;
      if v_at <= v_now then
        v_state := 'succeeded';
      end if;
    else
      delete from sluice.workflow_event
      where n = (
        select e.n from sluice.workflow_event e where e.run = p_run and e.name = s.event order by e.n limit 1)
      returning payload into v_outcome;
      if found then
        v_state := 'succeeded';
      elsif s.ms is not null then
        v_at := v_now + s.ms * interval '1 millisecond';
      end if;
    end if;
  exception when sqlstate 'SLUIC' or data_exception or program_limit_exceeded then
    v_state := 'failed';
    v_outcome := case
      when s.kind = 'sleep' then sluice.workflow_error('invalid_option', sqlerrm)
      else sluice.workflow_caught(sqlstate, sqlerrm) end;
  end;
  if v_state <> 'running' then
    update sluice.workflow_node
    set state = v_state, outcome = v_outcome, finished_at = v_now
    where run = p_run and node = p_node;
  elsif v_at is not null then
    insert into sluice.workflow_timer (run, node, due_at) values (p_run, p_node, v_at);
    perform sluice.poll_by(v_at);
  end if;
  return v_state;
end $$;
