-- Cancels tasks of nodes that are to halt: at most p_max new ones, passing over at most twenty times as many that are
-- over. The caller holds the run's lock; rows of halts are taken with SKIP LOCKED. Returns how many tasks were looked
-- at for the first time or ended by it, at least p_max while there are more to look at.
create or replace function sluice.workflow_halt_run(p_run bigint, p_max int) returns int
language plpgsql /* settings: index plans */ as $$
declare
  h record; v_ids bigint[]; v_last int; v_gone bigint[]; v_all bigint[]; v_pending bigint[];
  v_n int := 0; v_new int := 0; v_more boolean := false;
begin
  for h in
    select x.*, n.total
    from sluice.workflow_halt x
    join sluice.workflow_node n on n.run = x.run and n.node = x.node
    where x.run = p_run order by x.node for update of x skip locked
  loop
    v_ids := '{}';
    v_last := h.item;
    if h.item is not null and v_new < p_max then
      select coalesce(array_agg(w.id), '{}'), max(w.item) into v_ids, v_last
      from (
        select k.id, k.item
        from sluice.workflow_task k
        left join lateral (select true as ended from sluice.done d where d.id = k.id limit 1) d on true
        where k.run = p_run and k.node = h.node and k.item > h.item and k.item <= h.item + 20 * p_max
          and d.ended is null
        order by k.item limit p_max - v_new
      ) w;
      if cardinality(v_ids) < p_max - v_new then
        v_last := case when h.total > h.item + 20 * p_max + 1 then h.item + 20 * p_max end;
        v_new := v_new + least(h.total / 20, p_max);
      end if;
    end if;
    -- Each task once: two answers for one would both be counted.
    -- guard: each is cancelled once -> test/postgres/workflow/races.test.ts: "one of many items that is cancelled while it is released is counted once"
    select array_agg(c.id) filter (where c.answer = 'cancelled'),
      coalesce(array_agg(c.id) filter (where c.answer in ('asked', 'moving')), '{}')
    into v_gone, v_pending
    from sluice.cancel(
      /* guard:once */ array(select distinct i from unnest(h.pending || v_ids) i) /* end */, h.reason, false) c;
    v_n := v_n + cardinality(v_ids)
      + case when cardinality(v_ids) = 0 then coalesce(cardinality(v_gone), 0) else 0 end;
    v_new := least(v_new + cardinality(v_ids), p_max);
    v_more := v_more or v_last is not null;
    if v_last is null and v_pending = '{}' then
      delete from sluice.workflow_halt where run = p_run and node = h.node;
    else
      update sluice.workflow_halt set item = v_last, pending = v_pending where run = p_run and node = h.node;
    end if;
    if v_gone is not null then
      perform sluice.workflow_ended_elsewhere(
        v_gone, array_fill('cancelled'::sluice.state, array[cardinality(v_gone)]));
      v_all := v_all || v_gone;
    end if;
  end loop;
  -- guard: what cancelled tasks made is shut -> test/postgres/workflow/inner.test.ts: "cancel closes the maps of sleeping tasks and their nested maps before it returns"
  if /* guard:made */ v_all is not null /* end */ then
    v_n := v_n + sluice.workflow_cancel_maps_of(v_all, p_max - v_new);
  end if;
  return case when v_more then greatest(v_n, p_max) else v_n end;
end $$;
