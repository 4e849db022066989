-- Returns the outcome of a task that fails because its workers died with it. p_times: how often they did.
create or replace function sluice.poisoned_error(p_times int) returns json language sql stable as $$
  select json_build_object(
    'name', 'SluiceError',
    'code', 'poisoned',
    'message', 'its worker crashed or lost its lease ' || p_times || ' times while it ran, '
      || 'the last time while it ran alone; a handler that blocks the event loop also loses the lease')
$$;
