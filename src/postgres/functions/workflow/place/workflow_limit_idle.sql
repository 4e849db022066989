-- Lets the server end this transaction if it stays idle for 30 seconds. A placer whose process was stopped inside its
-- transaction would keep its locks for ever: once it has said that the node is placed, every settle of its run waits
-- for it. Only in transactions of our own: in a user's, no other transaction sees the run, and the settings are the
-- user's.
create or replace function sluice.workflow_limit_idle() returns void language plpgsql as $$
begin
  -- guard: a placer that stands still -> test/postgres/workflow/place.test.ts: "an idle placer is ended by the server, but not in a user's transaction"
  perform set_config('idle_in_transaction_session_timeout', /* guard:patience */ '30s' /* end */, true);
end $$;
