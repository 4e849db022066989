-- Whether a node that has ended meets a dependency on it: met; bad: it failed; unmet: a condition says so; neutral: it
-- was skipped by a condition. p_outcome: of a `when`, true or false.
create or replace function sluice.workflow_meets(p_on sluice.dependency, p_state sluice.state, p_outcome json)
returns text language sql immutable parallel safe as $$
  select case p_on
    when 'end' then 'met'
    when 'success' then case p_state
      when 'succeeded' then 'met' when 'skipped_by_condition' then 'neutral' else 'bad' end
    when 'failure' then case
      when p_state in ('failed', 'cancelled') then 'met'
      when p_state = 'skipped_by_failure' then 'bad'
      else 'unmet' end
    else case
      when p_state = 'succeeded' then
        case when (p_outcome::text = 'true') = (p_on = 'then') then 'met' else 'unmet' end
      when p_state = 'skipped_by_condition' then 'unmet'
      else 'bad' end
    end
$$;
