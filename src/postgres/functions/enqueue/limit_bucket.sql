-- Which of the advisory locks a group has. Number 0 is the barrier.
create or replace function sluice.limit_bucket(p_limit int) returns int language sql immutable parallel safe as
$$ select 1 + p_limit % 32 $$;
