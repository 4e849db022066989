-- Leaves the 10 newest attempts of each of these tasks. The caller has taken the tasks out of their state tables, so no
-- other transaction changes these rows.
create or replace function sluice.trim_attempts(p_ids bigint[]) returns void
language plpgsql /* settings: index plans */ as $$
begin
  delete from sluice.attempt where ctid = any (array(
    select x.tid
    from unnest(p_ids) u(id)
    cross join lateral (
      select a.ctid as tid from sluice.attempt a where a.id = u.id order by a.failed_at desc offset 10) x));
end $$;
