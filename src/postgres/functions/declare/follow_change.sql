-- Starts the walk over the keys of a limit whose number has changed, and examines the first 500. Needs the exclusive
-- barrier.
create or replace function sluice.follow_change(p_limit int) returns void language plpgsql as $$
begin
  insert into sluice.changed (limit_id, after) values (p_limit, sluice.first_key() - 1)
  on conflict (limit_id) do update set after = excluded.after;
  perform sluice.follow_limit(500, p_limit);
end $$;
