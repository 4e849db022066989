-- Pauses or resumes a queue. Takes the barrier exclusively, so that no task of a paused queue starts after this
-- returns.
create or replace function sluice.pause_queue(p_queue text, p_paused boolean) returns void language plpgsql as $$
begin
  perform sluice.barrier_exclusive();
  insert into sluice.queue (name) select 'default' where p_queue = 'default' on conflict do nothing;
  update sluice.queue set paused = p_paused where name = p_queue;
  if not found then perform sluice.refuse('unknown_queue', format('there is no queue named %L', p_queue)); end if;
  update sluice.stream set paused = p_paused where id = any (array(
    select s.id from sluice.stream s where s.queue = p_queue and s.paused <> p_paused order by s.id for update));
  if not p_paused then
    -- Parked tasks rejoin their lines at once, without waiting up to a second for the keeper.
    perform sluice.unpark(1000);
    perform sluice.ring(array(select id from sluice.stream where queue = p_queue), 50);
  end if;
end $$;
