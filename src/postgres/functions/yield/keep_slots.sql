-- Keeps slots of totals for tasks that need several at once (first_at_all), from a second after they were first found,
-- and for suspects that a worker has emptied itself for. It changes only counters, which it locks in the order of their
-- ids and skips when they are locked. Its other locks are the barrier and the row of pulse, by which one keeper at a
-- time does this.
create or replace function sluice.keep_slots() returns void language plpgsql as $$
declare
  v_now timestamptz := sluice.clock();
  v_changed int[];
begin
  if not exists (select from sluice.gated)
      and not exists (select from sluice.suspect)
      and not exists (select from sluice.kept) then
    return;
  end if;
  -- guard: a keeper waits for no other -> test/postgres/kept.test.ts: "a keeper that locks lanes does not wait for another that updates the pulse"
  /* guard:wait */ perform /* end */ from sluice.pulse for update skip locked;
  if not found then return; end if;
  -- A row further ahead than it is ever written: the clock was set back. Nothing would be kept until it has caught up.
  -- guard: a keeping ahead of the clock -> test/postgres/clock.test.ts: "a slot is still kept for the task that needs several after the clock was set back"
  delete from sluice.kept k
  where /* guard:clock */ k.since > v_now + interval '1 second' or /* end */
    not exists (select from sluice.suspect s where s.id = k.id and s.reserved_by is not null)
    and not exists (
      select from sluice.task t
      where t.id = k.id and sluice.gated_at(t.id, t.stream, t.gate, t.rank, t.lanes) is not null);
  insert into sluice.kept (id, gates, since, span_ms)
  select f.id, f.gates, v_now + interval '1 second', 2000
  from sluice.first_at_all((random() * 1000000000)::bigint) f
  union all
  select s.id,
    array(select distinct g from unnest(sluice.gates_of(t.gate) || st.gate) g where g > 0 order by g),
    v_now, 60000
  from sluice.suspect s
  join sluice.task t on t.id = s.id
  join sluice.stream st on st.id = t.stream
  where s.reserved_by is not null
  order by 1
  on conflict (id) do nothing;
  update sluice.kept k set since = v_now, span_ms = least(2 * k.span_ms, 60000)
  where v_now >= k.since + 2 * k.span_ms * interval '1 ms';
  with changed as (
    update sluice.gate g set kept_for = w.id
    from (
      select x.gate, (
          select min(k.id) from sluice.kept k
          where x.gate = any (k.gates) and v_now >= k.since and v_now < k.since + k.span_ms * interval '1 ms') as id
      from (
        select unnest(k.gates) as gate from sluice.kept k
        union select c.id from sluice.gate c where c.kept_for is not null) x
    ) w
    where g.id = w.gate and g.kept_for is distinct from w.id
      -- In one list and not by an OR, which would read every counter.
      and g.id = any (array(
        select l.id from sluice.gate l
        where l.id = any (array(
          select unnest(k.gates) from sluice.kept k
          union select c.id from sluice.gate c where c.kept_for is not null))
        order by l.id for update skip locked))
    returning g.id
  )
  select array_agg(id) into v_changed from changed;
  if v_changed is not null then perform sluice.note_returned(v_changed); end if;
end $$;
