-- Locks the counters that must change, absorbs their credits, and says how many slots each gate may use now, and until
-- when it was full: of those not locked only with p_meters. Counters are taken ascending and skipped when busy; only
-- with nothing in hand, and so holding no counter, does a step wait for one. A transaction that holds a counter waits
-- for nothing, except claim_suspect, for a higher counter. p_heads: the first task of each source, for which a slot may
-- be kept.
create or replace function sluice.lock_gates(p_gates int[], p_wants int[], p_own int[], p_heads bigint[],
  p_may_wait boolean, p_meters boolean,
  out slots int[], out locked boolean[], out absorbed int[], out full_until timestamptz[])
language plpgsql as $$
declare
  v_change int[]; v_locked int[]; v_room int[]; v_full timestamptz[]; v_kept int[];
  v_credit int[]; v_credit_n int[]; v_first timestamptz[]; v_last timestamptz[];
begin
  v_change := array(select g from unnest(p_gates, p_wants, p_own) u(g, want, own) where want <> own
    -- guard: a slot kept for a task is found by the step that freed it -> test/postgres/kept.test.ts: "a step gives a slot it has freed to the task it is kept for"
    or exists (select from sluice.gate k where k.id = g and /* guard:kept */ k.kept_for = any (p_heads) /* end */)
    order by g);
  if v_change <> '{}' then
    select array_agg(x.id), array_agg(x.room), array_agg(x.full_at), array_agg(x.kept)
    into v_locked, v_room, v_full, v_kept
    from unnest(v_change) c(gate) cross join lateral (
      select t.id, t.cap - t.used as room, t.full_at, case when t.kept_for <> all (p_heads) then 1 else 0 end as kept
      from sluice.gate t where t.id = c.gate for update /* guard:busy */ skip locked /* end */) x;
    if v_locked is null and p_may_wait then
      select array[x.id], array[x.room], array[x.full_at], array[x.kept] into v_locked, v_room, v_full, v_kept from (
        select t.id, t.cap - t.used as room, t.full_at, case when t.kept_for <> all (p_heads) then 1 else 0 end as kept
        from sluice.gate t where t.id = v_change[1] for update) x;
    end if;
    if v_locked is not null and exists (select from sluice.credit) then
      with gone as (
        delete from sluice.credit where gate = any (v_locked) returning gate, n, at
      ), sums as (
        select gate, sum(n)::int as n, min(at) as first, max(at) as last from gone group by gate
      )
      select array_agg(gate), array_agg(n), array_agg(first), array_agg(last)
      into v_credit, v_credit_n, v_first, v_last from sums;
    end if;
  end if;
  -- guard: cap check on re-use -> test/postgres/attacks.test.ts: "attack 7: slots reused inside a step respect a lowered limit"
  select array_agg(case when l.id is not null
      then /* guard:cap */ greatest(0, l.room + coalesce(c.n, 0) + u.own - l.kept) /* end */
      else least(u.own, u.want, greatest(0, sluice.gate_room(u.gate, p_gates, p_own))) end order by u.i),
    array_agg(l.id is not null order by u.i), array_agg(coalesce(c.n, 0) order by u.i),
    -- As in full_until.
    array_agg(case when l.id is null then case when p_meters then sluice.full_until(u.gate) end
      when l.room > 0 then l.full_at
      when l.room + coalesce(c.n, 0) <= 0 then 'infinity'
      when l.room = 0 then c.first else c.last end order by u.i)
  into slots, locked, absorbed, full_until
  from unnest(p_gates, p_wants, p_own) with ordinality u(gate, want, own, i)
  left join unnest(v_locked, v_room, v_full, v_kept) l(id, room, full_at, kept) on l.id = u.gate
  left join unnest(v_credit, v_credit_n, v_first, v_last) c(gate, n, first, last) on c.gate = u.gate;
end $$;
