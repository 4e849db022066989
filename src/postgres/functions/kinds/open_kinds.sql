-- Returns kinds with room of a stream with many totals, from one that the random token decides: most of them, or as
-- many as a claim can use. Makes at most 24 calls of examine_kinds; each kind found full is skipped from then on.
create or replace function sluice.open_kinds(p_stream int, p_own_gates int[], p_own_n int[], p_token bigint)
returns setof sluice.source language plpgsql as $$
declare
  v_start int := sluice.random_gate(p_token);
  v_from int := v_start;
  v_to int := sluice.int_max();
  v_found int := 0;
  v record;
  v_left boolean := sluice.wake_kinds(p_stream, p_own_gates, p_own_n);
begin
  for v_look in 1..24 loop
    select * into v from sluice.examine_kinds(p_stream, v_from, v_to, p_own_gates, p_own_n);
    return query select * from unnest(v.open);
    v_found := v_found + coalesce(cardinality(v.open), 0);
    exit when v_found >= 16;
    if v.last is not null and v.last < v_to then
      v_from := v.last + 1;
    elsif v_to = sluice.int_max() then
      v_from := sluice.int_min();
      v_to := v_start - 1;
    else
      -- All kinds were examined, and those just woken wait for other totals: wake the next that could use the slot.
      exit when v_found > 0 or not v_left;
      v_left := sluice.wake_kinds(p_stream, p_own_gates, p_own_n);
      v_from := v_start;
      v_to := sluice.int_max();
    end if;
  end loop;
end $$;
