-- Gives a type the limit that has its name, if the type has no limit of its own. Workers may call this, but not
-- set_stream_gate, which can also take a limit away.
create or replace function sluice.give_stream_gate(p_type text) returns void language plpgsql as $$
declare
  v_gate int := (select id from sluice.limits where name = p_type and total_declared is not null);
begin
  if v_gate is null then return; end if;
  if exists (select from sluice.contract where type = p_type and gate = 0) then
    perform sluice.set_stream_gate(p_type, v_gate);
  end if;
end $$;
