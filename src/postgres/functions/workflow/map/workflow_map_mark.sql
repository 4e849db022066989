-- Writes the digest of a fan-out's inputs, in the transaction that makes the fan-out.
create or replace function sluice.workflow_map_mark(p_run bigint, p_digest text) returns void language plpgsql as $$
begin
  update sluice.workflow_run
  set input = to_json(p_digest)
  where id = p_run and parent is not null and input::text = 'null';
end $$;
