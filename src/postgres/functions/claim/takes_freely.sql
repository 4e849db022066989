-- Whether a claim takes any task that needs no total.
create or replace function sluice.takes_freely(p_sources sluice.source[], p_wants int[]) returns boolean
language plpgsql immutable as $$
begin
  return exists (
    select from unnest(p_sources, p_wants) x(stream, gate, stream_gate, rank, turn, id, room, stream_room, k)
    where x.gate = 0 and x.stream_gate = 0 and x.k > 0);
end $$;
