-- Stores the answer of a retry under the token of its call (see sluice.retried), and deletes a few that are older than
-- ten minutes.
create or replace function sluice.note_retried(p_token bigint, p_answer int) returns void
language plpgsql set enable_seqscan = off as $$
begin
  if p_token is null then return; end if;
  insert into sluice.retried (token, answer) values (p_token, p_answer);
  delete from sluice.retried where token = any (array(
    select r.token from sluice.retried r
    where r.at < sluice.clock() - interval '10 minutes'
    order by r.at
    limit 10 for update skip locked));
end $$;
