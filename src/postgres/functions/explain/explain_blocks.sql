-- Returns the order key that a failed task blocks, and how many tasks wait behind it, up to 10,000. Null if it blocks
-- none.
create or replace function sluice.explain_blocks(p_task sluice.task) returns json language plpgsql stable as $$
begin
  return (
    select json_build_object(
      'key', split_part(p_task.lane_keys[1], E'\x1f', -1),
      'scope', case when p_task.lane_keys[1] like E'%\x1f%' then split_part(p_task.lane_keys[1], E'\x1f', 1) end,
      'behind', (select count(*) from (select from sluice.waiting y where y.lane = b.lane limit 10000) y))
    from sluice.block b
    where b.id = p_task.id);
end $$;
