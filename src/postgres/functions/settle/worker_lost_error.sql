-- The error of an attempt whose worker died, or was cut off for longer than its lease.
create or replace function sluice.worker_lost_error() returns json language sql immutable as $$
  select '{"name": "SluiceError", "code": "worker_lost",
    "message": "the worker died or lost its lease while the task was running; the attempt does not count"}'::json
$$;
