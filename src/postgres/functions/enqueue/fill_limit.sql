-- Sets the total of a group to the number given at enqueue, unless it has one: declared by code, or set by an operator,
-- who may have lifted the limit on purpose. Takes the barrier exclusively if it changes the number.
create or replace function sluice.fill_limit(p_limit int, p_total int) returns void language plpgsql as $$
begin
  if not exists (
      select from sluice.limits
      where id = p_limit and total_declared = sluice.no_limit() and total_override is null) then
    return;
  end if;
  perform sluice.barrier_exclusive();
  update sluice.limits set total_declared = p_total
  where id = p_limit and total_declared = sluice.no_limit() and total_override is null;
  if found then perform sluice.apply_limit(p_limit); end if;
end $$;
