-- The state of a task that fails or is cancelled.
create or replace function sluice.state_after(p_kind sluice.settlement) returns sluice.state
language sql immutable parallel safe as $$
  select case p_kind when 'fail' then 'failed'::sluice.state when 'cancel' then 'cancelled' end
$$;
