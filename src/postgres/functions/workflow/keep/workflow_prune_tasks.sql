-- Deletes tasks that belong to no run any more, but for those that still hold their order key. Runs under the settings
-- of workflow_prune.
create or replace function sluice.workflow_prune_tasks(p_ids bigint[]) returns void language plpgsql as $$
declare v_blocking bigint[];
begin
  v_blocking := array(
    select b.id
    from unnest(p_ids) u(id)
    cross join lateral (select id from sluice.block k where k.id = u.id limit 1) b);
  delete from sluice.done where id = any (p_ids) and id <> all (v_blocking);
  delete from sluice.task where id = any (p_ids) and id <> all (v_blocking);
end $$;
