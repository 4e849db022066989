-- Wakes the clients that wait for these results.
create or replace function sluice.tell_awaited(p_ids bigint[]) returns void language plpgsql as $$
begin
  perform pg_notify('sluice', 'done:' || id) from unnest(p_ids) id;
end $$;
