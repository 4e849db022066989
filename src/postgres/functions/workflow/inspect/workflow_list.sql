-- A page of runs, the newest first: those of a workflow, in a state, created since, and below an id; a null asks for
-- nothing. At most a page of every graph is looked at, so that neither runs of others nor handlers' fan-outs are passed
-- over; only p_since is searched among all of them. All live runs are searched.
create or replace function sluice.workflow_list(
  p_name text, p_state text, p_since timestamptz, p_below bigint, p_max int
) returns setof sluice.workflow_status language plpgsql stable /* settings: index plans */ as $$
declare
  v_since timestamptz := coalesce(p_since, '-infinity'); v_below bigint := coalesce(p_below, 9223372036854775807);
  v_ended sluice.state := case when p_state in ('failed', 'cancelled') then p_state end;
begin
  -- "Of this graph" is written below so that only an index by graph has them in order: that by id would pass over all
  -- others.
  if p_state in ('running', 'paused', 'cancelling') then
    return query
      select s.*
      from sluice.workflow_status s
      where s.finished_at is null and s.id < v_below and s.graph is not null and s.state = p_state
        and (p_name is null or s.name = p_name) and s.created_at >= v_since
      order by s.id desc limit p_max;
  elsif v_ended is not null then
    return query
      select x.*
      from (select g.id from sluice.workflow_graph g where p_name is null or g.name = p_name) g
      cross join lateral (
        select s.*
        from sluice.workflow_status s
        where s.stored_state in ('failed', 'cancelled') and s.stored_state = v_ended
          and (s.graph, s.id) < (g.id, v_below) and s.graph >= g.id and s.state = p_state and s.created_at >= v_since
        order by s.graph desc, s.id desc limit p_max
      ) x
      order by x.id desc limit p_max;
  else
    return query
      select x.*
      from (select g.id from sluice.workflow_graph g where p_name is null or g.name = p_name) g
      cross join lateral (
        select s.*
        from sluice.workflow_status s
        where (s.graph, s.id) < (g.id, v_below) and s.graph >= g.id
          and (p_state is null or s.state = p_state) and s.created_at >= v_since
        order by s.graph desc, s.id desc limit p_max
      ) x
      order by x.id desc limit p_max;
  end if;
end $$;
