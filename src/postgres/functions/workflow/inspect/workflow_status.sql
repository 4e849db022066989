-- Look: the state of runs, their nodes and items, their results and why they failed.

-- Per run: its state as users see it (state) and as it is stored (stored_state), and what it was made
-- of. Runs that are being pruned are not shown.
create or replace view sluice.workflow_status as
  select r.id, g.name, r.graph,
    case
      when r.finished_at is null and r.stopping then 'cancelling'
      when r.state = 'running' and r.paused then 'paused'
      else r.state::text end as state,
    r.open, r.created_at, r.finished_at, r.outcome, r.input, r.parent, r.name as map_name, r.state as stored_state
  from sluice.workflow_run r
  left join sluice.workflow_graph g on g.id = r.graph
  where not r.pruning;
