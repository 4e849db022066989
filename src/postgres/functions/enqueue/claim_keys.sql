-- Takes idempotency keys: the first enqueue of a key keeps it, a later one gets its task's id back.
-- The unique index makes concurrent holders of one key wait for each other; workers never touch it.
create or replace function sluice.claim_keys(p_stream int, p_ids bigint[], p_keys text[], p_inputs json[], p_ms bigint, out ids bigint[], out fresh boolean[])
language plpgsql as $$
begin
  select k.ids, k.fresh into ids, fresh from sluice.claim_keys_of((select type from sluice.stream where id = p_stream), p_ids, p_keys, p_inputs, p_ms) k;
end $$;
