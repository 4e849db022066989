-- Whether the transaction of this id (32 bits, as in xmax) is over. Also true for an id that is none: of several
-- lockers at once xmax names a list.
create or replace function sluice.has_ended(p_xid bigint) returns boolean language plpgsql stable as $$
declare v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint; v_behind bigint;
begin
  -- Half of all ids lie before the next one, the others after it.
  v_behind := ((v_next - p_xid + 2147483648) & 4294967295) - 2147483648;
  if p_xid = 0 then return true; end if;
  if v_behind > 0 then return pg_xact_status((v_next - v_behind)::text::xid8) is distinct from 'in progress'; end if;
  -- Newer than our snapshot, or none. Apart, because a block that catches errors costs more than the question.
  begin
    return pg_xact_status((v_next - v_behind)::text::xid8) is distinct from 'in progress';
  exception when invalid_parameter_value then
    return true;
  end;
end $$;
