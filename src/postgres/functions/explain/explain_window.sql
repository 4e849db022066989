-- What holds the tasks of a queue: how many by each reason, and one of them to ask more about. Everybody is counted once, by
-- what explain would name first; who is due, or about to join its line again, as next.
-- Of each type, or where tables do not know types of the queue, at most 100,000 rows are counted; `more` tells where
-- there may be more. The order of scans is kept, so that one who asks again hears the same.

-- What holds those at a window.
create or replace function sluice.explain_window(p_lane bigint) returns text language sql stable as $$
  select case when n.failing or r.stopping then 'stopping' when r.paused then 'paused' else 'window' end from sluice.workflow_node n join sluice.workflow_run r on r.id = n.run where n.lane = p_lane
$$;
