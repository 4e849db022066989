-- The only source of a stream whose tasks need several totals: all that wait stand at the gate of which this step has
-- just freed slots. Null if there is more to look at.
create or replace function sluice.sole_source(p_stream int, p_own_gates int[], p_own_n int[]) returns sluice.source
language plpgsql as $$
declare
  v sluice.source;
  v_stream_gate int := (select s.gate from sluice.stream s where s.id = p_stream and not s.paused);
  v_gate int := (select g.gate from sluice.gated g where g.stream = p_stream order by g.gate limit 1);
begin
  if v_stream_gate is null or v_gate is null
      or exists (select from sluice.gated g where g.stream = p_stream and g.gate > v_gate)
      or exists (select from sluice.ready r where r.stream = p_stream) then return null; end if;
  if v_stream_gate = v_gate or v_gate < 0 and v_stream_gate = any (sluice.gates_of(v_gate)) then
    v_stream_gate := 0;
  end if;
  if exists (select from unnest(p_own_gates) o where o <> v_stream_gate and o <> all (sluice.gates_of(v_gate))) then
    return null;
  end if;
  select g.rank, g.turn, g.id into v.rank, v.turn, v.id from sluice.gated g
  where g.stream = p_stream and g.gate = v_gate order by g.rank, g.turn limit 1;
  if not found then return null; end if;
  v.stream := p_stream; v.gate := v_gate; v.stream_gate := v_stream_gate;
  v.room := sluice.gate_room(v_gate, p_own_gates, p_own_n, v.id);
  v.stream_room := case when v_stream_gate = 0 then sluice.no_limit()
    else sluice.gate_room(v_stream_gate, p_own_gates, p_own_n, v.id) end;
  return v;
end $$;
