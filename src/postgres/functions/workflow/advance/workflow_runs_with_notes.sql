-- At most p_max runs with notes, other than p_except, beginning at a random one. Looks at one note of each run, so a
-- run with a million notes costs as much as a run with one. Takes no locks.
create or replace function sluice.workflow_runs_with_notes(p_except bigint[], p_max int) returns bigint[]
language plpgsql /* settings: index plans */ as $$
declare v_run bigint; v_first bigint; v_last bigint; v_runs bigint[] := '{}'; v_wrapped boolean := false;
begin
  select min(k.run), max(k.run) into v_first, v_last from sluice.workflow_note k;
  -- Random, so that no run waits behind others for ever.
  v_first := v_first + floor(random() * (v_last - v_first + 1))::bigint;
  v_run := v_first - 1;
  for v_look in 1..2 * p_max loop
    v_run := (select k.run from sluice.workflow_note k where k.run > v_run order by k.run limit 1);
    if v_wrapped then
      exit when v_run is null or v_run >= v_first;
    end if;
    if v_run is null then
      v_wrapped := true;
      v_run := -1;
      continue;
    end if;
    if v_run <> all (p_except) then
      v_runs := v_runs || v_run;
    end if;
    exit when cardinality(v_runs) >= p_max;
  end loop;
  return v_runs;
end $$;
