-- Records that tasks of this stream may pass these limits.
create or replace function sluice.declare_use(p_stream int, p_limit_ids int[]) returns void language plpgsql as $$
begin
  insert into sluice.gate_stream
  select g.id, p_stream from sluice.gate g where g.id = any (p_limit_ids)
  on conflict do nothing;
  if found then
    -- From this many totals on, walking them costs a claim more than the notes of functions/kinds.
    -- guard: many groups are noticed -> test/postgres/kinds.test.ts: "a task of a free group is claimed immediately beside thousands of full groups"
    update sluice.stream set many = true
    where id = p_stream and not many
      and (select count(*) from (select from sluice.gate_stream where stream = p_stream limit 64) x)
        = /* guard:many */ 64 /* end */;
  end if;
  update sluice.stream set laned = true
  where id = p_stream and not laned
    and exists (select from sluice.limits where id = any (p_limit_ids) and per_key_declared is not null);
  perform sluice.gate_of(array(select distinct g.id from sluice.gate g where g.id = any (p_limit_ids) order by g.id));
end $$;
