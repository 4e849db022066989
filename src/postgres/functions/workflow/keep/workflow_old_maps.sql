-- Handlers' fan-outs that are older than their time, at most p_max, without locks. A fan-out is kept while its task may
-- read it: also a task that failed may be tried again. So old ones may stay for long, and are looked at in parts: the
-- oldest, and some by a walk, which has come up to p_after. Runs under the settings of workflow_prune. Returns their
-- ids and where the walk goes on, 0: it is at its end.
create or replace function sluice.workflow_old_maps(
  p_now timestamptz, p_succeeded_ms bigint, p_failed_ms bigint, p_cancelled_ms bigint, p_max int, p_after bigint,
  out ids bigint[], out after bigint
) language plpgsql as $$
declare v_look bigint[];
begin
  v_look := array(
    select x.id from sluice.workflow_run x
    where x.parent is not null and x.finished_at is not null and x.id > p_after order by x.id limit 500);
  after := coalesce(v_look[500], 0);
  v_look := v_look || array(
    select x.id from sluice.workflow_run x
    where x.parent is not null and x.finished_at is not null and x.id <= p_after order by x.id limit 500);
  ids := array(
    select r.id
    from (select x.* from sluice.workflow_run x where x.id = any (v_look)) r
    left join lateral (select k.id from sluice.task k where k.id = r.parent limit 1) t on true
    left join lateral (select k.state from sluice.done k where k.id = t.id limit 1) d on true
    where (t.id is null or d.state = 'succeeded')
      and r.finished_at < p_now - interval '1 millisecond'
        * case r.state when 'succeeded' then p_succeeded_ms when 'failed' then p_failed_ms else p_cancelled_ms end
    order by r.id limit p_max);
end $$;
