-- Hands back everything that a worker holds under claims it does not know of, because their replies were lost. Returns
-- how many tasks. The worker calls it until it holds nothing, because a cut-off claim may still commit.
create or replace function sluice.release_unknown(p_worker bigint, p_known bigint[]) returns int language plpgsql as $$
declare
  v_ids bigint[];
  v_claims bigint[];
begin
  perform sluice.barrier_shared();
  select array_agg(id), array_agg(claim)
  into v_ids, v_claims
  from sluice.running
  where worker = p_worker and /* guard:known */ claim <> all (p_known) /* end */;
  if v_ids is null then return 0; end if;
  return coalesce(cardinality(
    sluice.settle(
      p_worker, v_ids, v_claims, array_fill('release'::sluice.settlement, array[cardinality(v_ids)]), null, null)), 0);
end $$;
