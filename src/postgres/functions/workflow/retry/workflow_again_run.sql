-- Brings back tasks of nodes that run again, at most p_max of them, in the order of their items, and looks at no more
-- than twenty times as many. The caller holds the run's lock. Of what these tasks had fanned out nothing is waited for,
-- so that it makes no difference what else the caller has locked: what is in another's hand, or being cancelled, keeps
-- its task back until the next call. Returns how many came back, at least p_max while the next call would find more.
create or replace function sluice.workflow_again_run(p_run bigint, p_max int) returns int
language plpgsql /* settings: index plans */ as $$
declare a record; v_lanes bigint[]; v_left int; v_want int; v_new bigint[]; v_last int; v_ids bigint[]; v_mine bigint[]; v_kept bigint[]; v_f int; v_c int; v_n int := 0; v_more boolean := false;
begin
  -- A window that was shut when its node ended is open again. Lanes by id, once.
  v_lanes := array(select n.lane from sluice.workflow_again x join sluice.workflow_node n on n.run = x.run and n.node = x.node where x.run = p_run and x.item = -1 and n.lane is not null);
  if v_lanes <> '{}' then
    perform from sluice.lane l where l.id = any (v_lanes) order by l.id for update;
    update sluice.lane l set cap = sluice.lane_cap(l.id, -2) where l.id = any (v_lanes);
  end if;
  for a in select x.*, n.total from sluice.workflow_again x join sluice.workflow_node n on n.run = x.run and n.node = x.node where x.run = p_run order by x.node loop
    if v_n >= p_max then v_more := true; exit; end if;
    v_new := '{}'; v_last := a.item; v_left := a.failed + a.cancelled - cardinality(a.pending); v_want := least(v_left, p_max - v_n);
    if a.item is not null and cardinality(a.pending) < p_max then
      select coalesce(array_agg(w.id), '{}'), max(w.item) into v_new, v_last from (
        select k.id, k.item from sluice.workflow_task k cross join lateral (select from sluice.done d where d.id = k.id and d.state in ('f', 'c') limit 1) d
        where k.run = p_run and k.node = a.node and k.item > a.item and k.item <= a.item + 20 * p_max order by k.item limit v_want) w;
      v_last := case when cardinality(v_new) = v_left then null when cardinality(v_new) = v_want then v_last when a.total > a.item + 20 * p_max + 1 then a.item + 20 * p_max end;
    end if;
    v_ids := a.pending || v_new;
    -- guard: what tasks made is not waited for -> test/postgres/workflow/races.test.ts: "a retry waits for nobody who holds what a task of the run had fanned out"
    v_mine := array(select r.id from sluice.workflow_run r where r.parent = any (v_ids) for update /* guard:locked */ skip locked /* end */);
    -- guard: a task comes back after what it made has stopped -> test/postgres/workflow/again.test.ts: "a task comes back when the cancel of what it had fanned out is over, and not before"
    v_kept := array(select distinct r.parent from sluice.workflow_run r where r.parent = any (v_ids) and (/* guard:stopped */ r.stopping and r.finished_at is null or /* end */ r.id <> all (v_mine)));
    if v_kept <> '{}' then v_ids := array(select i from unnest(v_ids) i where i <> all (v_kept)); end if;
    select count(*) filter (where d.state = 'f'), count(*) filter (where d.state = 'c') into v_f, v_c
    from unnest(v_ids) u(id) cross join lateral (select x.state from sluice.done x where x.id = u.id limit 1) d;
    v_n := v_n + sluice.retry_many(v_ids);
    if v_last is null and v_kept = '{}' then
      delete from sluice.workflow_again where run = p_run and node = a.node;
    else
      update sluice.workflow_again x set item = v_last, pending = v_kept, failed = x.failed - v_f, cancelled = x.cancelled - v_c where x.run = p_run and x.node = a.node;
      -- Behind p_max that are kept back nobody is looked for: whoever called again at once would only ask for these again.
      v_more := v_more or v_last is not null and cardinality(v_kept) < p_max;
    end if;
  end loop;
  return case when v_more then greatest(v_n, p_max) else v_n end;
end $$;
