-- Keeps a graph until the caller commits. A start of a run holds this advisory lock shared, and a delete of the graph
-- holds it alone, because no other transaction sees a run that is not committed. An advisory lock, because a row lock
-- would be written for every start. It is taken before all others, and a start never waits for more than a delete of a
-- few rows.
create or replace function sluice.workflow_keep_graph(p_graph int) returns void language plpgsql as $$
begin
  -- guard: a graph is kept for who starts it -> test/postgres/workflow/graph.test.ts: "a graph is kept for a start that is not committed yet"
  perform pg_advisory_xact_lock_shared('sluice.workflow_graph'::regclass::oid::int, /* guard:kept */ p_graph /* end */);
end $$;
