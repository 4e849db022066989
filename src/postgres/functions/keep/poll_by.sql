-- Makes the leader look by p_at, when a task or a timer is due. Notifies it unless it will look in between anyway, so
-- that a stream of scheduled tasks sends few notifications. A look that begins within 20 ms does not count: it may not
-- see what this transaction has written. A leader looks at least every 2.5 s. What a transaction that stays open until
-- after p_at has written may be found late, by the next look.
create or replace function sluice.poll_by(p_at timestamptz) returns void language plpgsql as $$
declare
  v_now timestamptz := sluice.clock();
begin
  -- In two parts, because `migrate` would quote the schema name inside the literal.
  -- guard: a look can be left out too -> test/postgres/notes.test.ts: "an enqueue with sluice.ring = off sends no notification, delayed or not"
  if current_setting('sluice' || '.ring', true) = /* guard:sure */ 'off' /* end */ then return; end if;
  if p_at > v_now + interval '3 seconds' then return; end if;
  perform pg_notify('sluice', 'keep:' || k.leader)
  from sluice.keeper k
  where k.until > v_now and not (k.next_at > v_now + interval '20 milliseconds' and k.next_at <= p_at);
end $$;
