-- Inserts tasks without lanes, into scheduled, ready or gated. p_fresh: which of them are new; null for all.
create or replace function sluice.insert_plain(
  p_stream int, p_rank smallint, p_attempts smallint, p_ids bigint[], p_inputs json[], p_gate int,
  p_later timestamptz, p_fresh boolean[], p_traces text[])
returns void language plpgsql /* settings: kept plans */ as $$
begin
  if p_fresh is not null then
    select array_agg(id order by id), array_agg(input order by id), array_agg(trace order by id)
    into p_ids, p_inputs, p_traces
    from unnest(p_ids, p_inputs, p_fresh, p_traces) u(id, input, fresh, trace)
    where fresh;
    if p_ids is null then return; end if;
  end if;
  insert into sluice.task (id, stream, rank, attempts_max, gate, input, trace, due_at)
  select id, p_stream, p_rank, p_attempts, p_gate, input, trace, p_later
  from unnest(p_ids, p_inputs, p_traces) u(id, input, trace);
  if p_later is not null then
    insert into sluice.scheduled (id, run_at, attempt, held)
    select id, p_later, 0, 0 from unnest(p_ids) id;
  elsif p_gate = 0 then
    insert into sluice.ready (id, stream, rank, attempt, turn)
    select id, p_stream, p_rank, 0, sluice.own_turn(id) from unnest(p_ids) id;
  else
    insert into sluice.gated (id, stream, gate, rank, attempt, turn)
    select id, p_stream, p_gate, p_rank, 0, sluice.own_turn(id) from unnest(p_ids) id;
  end if;
end $$;
