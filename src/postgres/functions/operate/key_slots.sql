-- Returns the most slots that one key of a limit uses, and how many tasks wait at full keys, counted up to 1,000. Reads
-- at most 10,000 keys.
create or replace function sluice.key_slots(p_limit int, p_per_key int) returns table (used int, waiting int)
language sql stable as $$
  select
    coalesce((
      select max(n.used)
      from (select n.used from sluice.lane n where n.limit_id = p_limit and n.limit_id > 0 limit 10000) n), 0)::int,
    (select count(*)
      from (
        select
        from (
          select n.id
          from (
            select n.id, n.used from sluice.lane n where n.limit_id = p_limit and n.limit_id > 0 limit 10000) n
          where n.used >= p_per_key
          limit 1000) n
        cross join lateral (select from sluice.waiting w where w.lane = n.id limit 1000) w
        limit 1000) w)::int
$$;
