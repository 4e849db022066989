-- Creates or changes a schedule. p_seen: the revision that p_next_at was computed for, null for a schedule that did not
-- exist. Returns false if the schedule has changed since: read it again.
create or replace function sluice.set_schedule(
  p_name text, p_seen bigint, p_digest text, p_stream int, p_input json,
  p_cron text, p_time_zone text, p_every_ms bigint, p_missed text,
  p_priority int, p_attempts int, p_order_key text, p_order_blocks boolean, p_limit_names text[], p_limit_keys text[],
  p_enabled boolean, p_next_at timestamptz)
returns boolean language plpgsql as $$
begin
  perform sluice.hold_limits(array(select l.id from sluice.limits l where l.name = any (p_limit_names)));
  if exists (select from unnest(p_limit_names) n where not exists (select from sluice.limits l where l.name = n)) then
    perform sluice.refuse('unknown_limit', 'one of the limits does not exist');
  end if;
  if p_seen is null then
    insert into sluice.schedule (
      name, digest, stream, input, cron, time_zone, every_ms, missed,
      priority, attempts, order_key, order_blocks, limit_names, limit_keys,
      enabled, next_at, due_at)
    values (
      p_name, p_digest, p_stream, p_input, p_cron, p_time_zone, p_every_ms, p_missed,
      p_priority, p_attempts, p_order_key, p_order_blocks, p_limit_names, p_limit_keys,
      p_enabled, case when p_enabled then p_next_at end, case when p_enabled then p_next_at end)
    on conflict (name) do nothing;
    if not found then return false; end if;
    perform sluice.poll_by(p_next_at);
    return true;
  end if;
  update sluice.schedule set
    digest = p_digest, stream = p_stream, input = p_input,
    cron = p_cron, time_zone = p_time_zone, every_ms = p_every_ms, missed = p_missed,
    priority = p_priority, attempts = p_attempts, order_key = p_order_key, order_blocks = p_order_blocks,
    limit_names = p_limit_names, limit_keys = p_limit_keys,
    enabled = p_enabled, trouble = null, revision = default,
    next_at = case when p_enabled and not paused then p_next_at end,
    due_at = case when p_enabled and not paused then p_next_at end
  where name = p_name and revision = p_seen;
  if not found then return false; end if;
  perform sluice.poll_by(p_next_at);
  return true;
end $$;
