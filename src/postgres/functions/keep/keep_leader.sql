-- Finds out what only the leader has to do. ticks: schedules are due. runs: workflow runs have something to do. waits:
-- some of that waits for the next look. maps: there are fan-outs of handlers. ended: there are runs to prune some day.
-- next_at: when the next schedule or timer is due. Volatile, to read the latest snapshot as its caller does.
create or replace function sluice.keep_leader(
  p_now timestamptz,
  out ticks boolean, out runs boolean, out waits boolean, out maps boolean, out ended boolean, out next_at timestamptz)
language plpgsql /* settings: index plans */ as $$
begin
  select exists (select from sluice.schedule s where s.due_at <= p_now),
    exists (select from sluice.workflow_timer t where t.due_at <= p_now),
    exists (select from sluice.workflow_note) or exists (select from sluice.workflow_halt)
      or exists (select from sluice.workflow_again),
    exists (select from sluice.parent) or exists (select from sluice.workflow_orphan)
      or exists (select from sluice.workflow_lead)
      or exists (
        select from sluice.workflow_run r where r.parent is not null and r.finished_at is null and not r.stopping),
    exists (select from sluice.workflow_run r where r.parent is null and r.finished_at is not null)
      or exists (select from sluice.workflow_run r where r.parent is not null and r.finished_at is not null),
    least(
      (select s.due_at from sluice.schedule s where s.due_at > p_now order by s.due_at limit 1),
      (select t.due_at from sluice.workflow_timer t where t.due_at > p_now order by t.due_at limit 1))
  into ticks, runs, waits, maps, ended, next_at;
  runs := runs or waits
    or exists (select from sluice.workflow_unplaced)
    or maps and exists (select from sluice.stop s join sluice.parent p on p.id = s.id);
end $$;
