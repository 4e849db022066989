-- Picks where some tasks need slots of several totals: in order, each only if all of its totals have one left.
create or replace function sluice.pick_one_by_one(p_n int, p_sources sluice.source[], p_own int, p_depth int,
  p_rank smallint, p_turn bigint, p_gates int[], p_rooms int[],
  out wants int[], out taken int, out rank smallint, out turn bigint) language plpgsql as $$
declare v_left int[] := p_rooms; v_at int[] := '{}'; v_ends int[] := '{0}'; v_fits boolean; c record;
begin
  wants := array_fill(0, array[cardinality(p_sources)]);
  taken := 0;
  -- Where each source's totals stand in p_gates: one after the other, source i's from v_ends[i] + 1 to v_ends[i + 1].
  for i in 1..cardinality(p_sources) loop
    v_at := v_at || array(select array_position(p_gates, g)
      from unnest(sluice.gates_of(p_sources[i].gate) || p_sources[i].stream_gate) g where g = any (p_gates));
    v_ends := v_ends || cardinality(v_at);
  end loop;
  for c in select * from sluice.candidates(p_sources, p_depth, p_rank, p_turn) x order by x.rank, x.turn loop
    v_fits := true;
    for j in v_ends[c.i] + 1..v_ends[c.i + 1] loop
      -- guard: a total counts for all kinds -> test/postgres/turns.test.ts: "a slot of a shared total goes to the first task, whatever else the task needs: %s"
      /* guard:shared-total */ v_fits := v_fits and v_left[v_at[j]] > 0 /* end */;
    end loop;
    continue when not v_fits;
    for j in v_ends[c.i] + 1..v_ends[c.i + 1] loop v_left[v_at[j]] := v_left[v_at[j]] - 1; end loop;
    wants[c.i] := wants[c.i] + 1;
    continue when c.i > p_own;
    taken := taken + 1;
    rank := c.rank;
    turn := c.turn;
    exit when taken >= p_n;
  end loop;
end $$;
