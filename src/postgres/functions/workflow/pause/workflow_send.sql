-- Pause, windows and events: changes to a run while it runs.

-- Sends an event to a run: only inserts, so it may be part of a user's transaction. It is kept until a node takes it.
-- Refuses an event that no node of the graph waits for, because it would be lost. About a thousand may be kept for one
-- run: those of concurrent transactions do not see each other. p_workflow: the workflow that the sender takes the run
-- for, null if it does not say. Returns false if there is no such run, or it is over.
create or replace function sluice.workflow_send(p_run bigint, p_name text, p_payload json, p_workflow text default null)
returns boolean language plpgsql /* settings: index plans */ as $$
declare v_graph int; v_workflow text; v_events text;
begin
  if coalesce(length(p_name), 0) not between 1 and 128 then
    perform sluice.refuse('invalid_name', 'the name of an event must have 1 to 128 characters');
  end if;
  perform sluice.check_input(p_payload);
  select r.graph into v_graph from sluice.workflow_run r where r.id = p_run and r.finished_at is null;
  if not found then
    return false;
  end if;
  if p_workflow is not null then
    v_workflow := (select g.name from sluice.workflow_graph g where g.id = v_graph);
    if v_workflow is distinct from p_workflow then
      perform sluice.refuse('invalid_option', format(
        'run %s belongs to %s, not to workflow %s',
        p_run, coalesce('workflow ' || to_json(v_workflow), 'a handler''s map'), to_json(p_workflow)));
    end if;
  end if;
  if not exists (select from sluice.workflow_step s where s.graph = v_graph and s.event = p_name) then
    v_events := (
      select string_agg(to_json(x.event)::text, ', ' order by x.node)
      from (
        select s.event, min(s.node) as node from sluice.workflow_step s
        where s.graph = v_graph and s.event is not null group by s.event order by 2 limit 10
      ) x);
    perform sluice.refuse('unknown_event', format(
      'run %s has no node that waits for event %s: %s',
      p_run, to_json(p_name), coalesce('its events are ' || v_events, 'it has none')));
  end if;
  if exists (select from sluice.workflow_event where run = p_run offset 999) then
    perform sluice.refuse('too_many_events',
      format('run %s already has 1,000 events that no node has received', p_run));
  end if;
  insert into sluice.workflow_event (run, name, payload) values (p_run, p_name, coalesce(p_payload, 'null'));
  insert into sluice.workflow_note (run) values (p_run);
  perform sluice.poll_by(sluice.clock() + interval '100 milliseconds');
  return true;
end $$;
