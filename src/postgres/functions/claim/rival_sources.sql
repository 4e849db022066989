-- The heads of rivals at gates that were full a moment ago. What lay free for longer was left to them long enough:
-- their workers may be frozen.
create or replace function sluice.rival_sources(p_gates int[], p_streams int[], p_own_gates int[], p_own_n int[],
  p_token bigint) returns sluice.source[] language plpgsql as $$
declare
  v_rivals record; v_late timestamptz := sluice.clock() - interval '1 second';
  v_busy int[] := array(select g from unnest(p_gates) g where sluice.full_until(g) > v_late);
begin
  /* guard:better */ if v_busy = '{}' then return null; end if /* end */;
  select * into v_rivals from sluice.rivals(v_busy, p_streams);
  if v_rivals.streams is null then return null; end if;
  -- No more of each than its workers can take.
  return (
    select array_agg(row(x.stream, x.gate, x.stream_gate, x.rank, x.turn, x.id, least(x.room, r.capacity),
      x.stream_room)::sluice.source)
    from unnest(sluice.sources(v_rivals.streams, p_own_gates, p_own_n, p_token)) x
    join unnest(v_rivals.streams, v_rivals.capacity) r(stream, capacity) on r.stream = x.stream
    where exists (select from unnest(sluice.gates_of(x.gate) || x.stream_gate) g where g = any (v_busy)));
end $$;
