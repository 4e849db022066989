-- Takes idempotency keys for tasks of a stream. The first enqueue of a key keeps it; a later one gets the id of that
-- task. The unique index makes concurrent transactions with the same key wait for each other; workers never touch it.
-- ids: the task of each key. fresh: whether that task is new.
create or replace function sluice.claim_keys(
  p_stream int, p_ids bigint[], p_keys text[], p_inputs json[], p_ms bigint,
  out ids bigint[], out fresh boolean[])
language plpgsql as $$
begin
  select k.ids, k.fresh into ids, fresh
  from sluice.claim_keys_of(
    (select type from sluice.stream where id = p_stream), p_ids, p_keys, p_inputs, p_ms) k;
end $$;
