-- Returns those of these limits that could be forgotten, as far as committed transactions show. Volatile, so that each
-- call reads a new snapshot.
create or replace function sluice.unused_limits(p_ids int[]) returns int[]
language plpgsql volatile /* settings: index plans */ as $$
begin
  return array(
    select l.id from sluice.limits l
    where l.id = any (p_ids)
      and l.transient
      and l.per_key_declared is null
      and l.total_override is null
      -- guard: a group with tasks is not forgotten -> test/postgres/forget.test.ts: "a group is forgotten only when no task refers to it, live or in history"
      and not exists (select from sluice.task t where /* guard:tasks */ t.gate = l.id and t.gate <> 0 /* end */)
      -- A total in more than 1,000 sets waits until some of them are deleted with other groups: not all are examined.
      and case
        when (select count(*) from (select from sluice.gate_member m where m.total = l.id limit 1001) m) > 1000
        then false
        else not exists (
          select
          from sluice.gate_member m
          cross join lateral (select from sluice.task t where t.gate = m.gate and t.gate <> 0 limit 1) t
          where m.total = l.id)
      end
      and l.id not in (select c.gate from sluice.contract c)
      and l.id not in (select u.id from sluice.contract c cross join lateral unnest(c.limit_ids) u(id))
      and l.name not in (select n from sluice.schedule s cross join lateral unnest(s.limit_names) n)
    order by l.id);
end $$;
