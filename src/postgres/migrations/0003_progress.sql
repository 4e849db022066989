-- What a handler has reported of its progress, the latest only: fraction, from 0 to 1, and data of its own. claim: of
-- the execution that reported it. Rows go with the history of their task (prune_done); those whose task has left no
-- history are found by the keeper (prune_expired).
create table sluice.progress (
  id bigint primary key, claim bigint not null, fraction real not null, data json, at timestamptz not null
) with (fillfactor = 50);
