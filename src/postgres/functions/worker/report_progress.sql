-- Stores the progress of executions. Only that of tasks in hand under these claims counts: a worker that has lost a
-- task does not overwrite what another reports. p_data: JSON texts split by U+001E, '' for none. Rows are locked in the
-- order of their ids, after no other lock.
create or replace function sluice.report_progress(p_ids bigint[], p_claims bigint[], p_fractions real[], p_data text)
returns void language plpgsql /* settings: index plans */ as $$
begin
  -- guard: progress is fenced -> test/worker/progress.test.ts: "an execution that lost its task does not overwrite its progress"
  insert into sluice.progress as p (id, claim, fraction, data, at)
  select u.id, u.claim, u.fraction, u.data::json, sluice.clock()
  from unnest(p_ids, p_claims, p_fractions, string_to_array(p_data, E'\x1e', '')) u(id, claim, fraction, data)
  where exists (select from sluice.running r where r.id = u.id /* guard:fence */ and r.claim = u.claim /* end */)
  order by u.id
  on conflict (id) do update
  set claim = excluded.claim, fraction = excluded.fraction, data = excluded.data, at = excluded.at;
end $$;
