-- Gives a type its own limit, or takes it away (p_gate 0). The backlog need not move: the limit is a property of the
-- stream and is looked up by each claim (attack 12). Running tasks are counted in. Takes the barrier exclusively, then
-- locks the streams and the running tasks of the type.
create or replace function sluice.set_stream_gate(p_type text, p_gate int) returns void
language plpgsql set lock_timeout = '10s' as $$
declare
  v_running int;
begin
  perform sluice.barrier_exclusive();
  update sluice.contract set gate = p_gate where type = p_type;
  update sluice.stream set gate = p_gate where id = any (array(
    select s.id from sluice.stream s where s.type = p_type order by s.id for update));
  if p_gate = 0 then
    perform sluice.ring(array(select id from sluice.stream where type = p_type), 50);
    return;
  end if;
  insert into sluice.gate_stream select p_gate, id from sluice.stream where type = p_type on conflict do nothing;
  with running as (
    select r.ctid
    from sluice.running r
    join sluice.task t on t.id = r.id
    join sluice.stream s on s.id = t.stream
    -- Not SKIP LOCKED: a completion in a user's transaction may roll back, and its task goes on running.
    where s.type = p_type and r.stream_gate <> p_gate and p_gate <> all (sluice.gates_of(r.gate))
    for update of /* guard:settling */ r /* end */
  ), gone as (
    delete from sluice.running where ctid = any (array(select ctid from running)) returning *
  ), counted as (
    insert into sluice.running (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
    select id, claim, worker, attempt, started_at, gate, p_gate, lanes from gone
    returning 1
  )
  select count(*) into v_running from counted;
  update sluice.gate set used = used /* guard:running */ + /* guard:count */ v_running /* end */ /* end */
  where id = p_gate;
end $$;
