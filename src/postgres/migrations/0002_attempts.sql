-- Attempts that did not succeed and were followed by another: at most 10 of a task, the newest. The error of a final
-- failure is in `done`, until a manual retry moves it here. worker: its name, for people. A task that succeeds at its
-- first attempt has no row, so its hot path pays nothing. Rows go with the history of their task (prune_done); those
-- whose task has left no history are found by the keeper (prune_expired).
create table sluice.attempt (
  id bigint not null, attempt smallint not null, worker text, started_at timestamptz, failed_at timestamptz not null,
  error json
);
create index attempt_id on sluice.attempt (id);
alter table sluice.attempt replica identity full;
