-- The names of nodes that wait for each other in a circle, at most ten. p_behind: the nodes after each node, as the
-- text of an int[]. p_blocked: how many of the nodes that a node comes after are never over.
create or replace function sluice.workflow_circle(p_steps json, p_behind text[], p_blocked int[]) returns text
language plpgsql as $$
declare v_before int[]; v_at int; v_next int; v_way int[];
begin
  for i in 1..cardinality(p_blocked) loop
    continue when p_blocked[i] = 0;
    v_at := i;
    foreach v_next in array p_behind[i]::int[] loop
      v_before[v_next] := i;
    end loop;
  end loop;
  -- A blocked node waits for another blocked one: after as many steps back as there are nodes, we are in a circle.
  for i in 1..cardinality(p_blocked) loop
    v_at := v_before[v_at];
  end loop;
  v_next := v_at;
  loop
    v_way := v_next || v_way;
    v_next := v_before[v_next];
    exit when v_next = v_at or cardinality(v_way) = 10;
  end loop;
  return (
    select string_agg(quote_literal(p_steps -> (w.node - 1) ->> 'name'), ', ' order by w.n)
    from unnest(v_way) with ordinality w(node, n));
end $$;
