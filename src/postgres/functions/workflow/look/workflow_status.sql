-- Look: the state of runs, their nodes and items, their results and why they failed.

-- Per run: its state in words (state) and as it is stored (code), and what it was made of. Runs that are being pruned
-- are not shown.
create or replace view sluice.workflow_status as
  select r.id, g.name, r.graph,
    case
      when r.finished_at is not null or not r.stopping then case r.state
        when 'r' then case when r.paused then 'paused' else 'running' end
        when 's' then 'succeeded'
        when 'f' then 'failed'
        else 'cancelled' end
      else 'cancelling' end as state,
    r.open, r.created_at, r.finished_at, r.outcome, r.input, r.parent, r.name as map_name, r.state as code
  from sluice.workflow_run r
  left join sluice.workflow_graph g on g.id = r.graph
  where not r.pruning;
