-- Returns the obstacles of a task that is scheduled, waiting or ready, in the order in which it meets them; `next` if
-- there is none.
create or replace function sluice.explain_reasons(p_task sluice.task, p_stream sluice.stream, p_deep boolean)
returns json[]
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  w record;
  p record;
  x record;
  v_reasons json[] := '{}';
  v_through boolean;
  v_over int;
  v_turn bigint;
  v_before int;
  v_one json;
begin
  select * into w from sluice.explain_workers(array[p_stream.id]);
  select * into p from sluice.explain_place(p_task);
  -- A task that is due is moved by the next worker that looks.
  if p.run_at > sluice.clock() then
    v_reasons := v_reasons || json_build_object('kind', 'scheduled', 'until', p.run_at);
  end if;
  if p.runs is not null then v_reasons := v_reasons || json_build_object('kind', 'children', 'runs', p.runs); end if;
  -- That is why a parked task has left its line.
  if p.parked and w.live = 0 then v_reasons := v_reasons || sluice.explain_nobody(p_stream, w.leaving); end if;
  -- A number was lowered below the slots in use: a task that holds one of them may not start.
  v_over := sluice.over_lane(p_task.lanes[1:p.held]);
  if v_over is not null and exists (select from sluice.lowered) then
    v_reasons := v_reasons || sluice.explain_lane(p_task, v_over, false, p_deep);
  end if;
  for i in p.held + 1..coalesce(cardinality(p_task.lanes), 0) loop
    v_reasons := v_reasons || sluice.explain_lane(
      p_task, i, p.stands and i = p.held + 1, p_deep and cardinality(v_reasons) = 0);
  end loop;
  v_through := p.through and cardinality(v_reasons) = 0;
  v_turn := sluice.explain_turn(p_task);
  for x in
    select distinct g.id from unnest(sluice.gates_of(p_task.gate) /* guard:gate */ || p_stream.gate /* end */) g(id)
    where g.id > 0 order by g.id
  loop
    v_one := sluice.explain_gate(p_task, x.id, case when v_through then v_turn end);
    if v_one is not null then v_reasons := v_reasons || v_one; end if;
  end loop;
  if p_stream.paused then
    v_reasons := v_reasons || json_build_object('kind', 'paused', 'what', 'queue', 'name', p_stream.queue);
  end if;
  if w.live = 0 and not p.parked then v_reasons := v_reasons || sluice.explain_nobody(p_stream, w.leaving); end if;
  v_one := sluice.explain_suspect(p_task.id);
  if v_one is not null then v_reasons := v_reasons || v_one; end if;
  if v_through then v_before := sluice.explain_before(p_task, v_turn); end if;
  if w.live > 0 and w.available <= 0 then
    if w.silent > 0 then
      v_reasons := v_reasons || json_build_object('kind', 'silent', 'workers', w.silent, 'heardAt', w.heard_at);
    end if;
    if w.stopped > 0 then
      v_reasons := v_reasons || json_build_object('kind', 'pressure', 'workers', w.stopped, 'reasons', w.pressure);
    end if;
    if w.silent + w.stopped < w.live then
      v_reasons := v_reasons || json_build_object(
        'kind', 'busy', 'workers', w.live - w.silent - w.stopped, 'capacity', w.capacity, 'before', v_before);
    end if;
  end if;
  if cardinality(v_reasons) > 0 then return v_reasons; end if;
  return array[json_build_object('kind', 'next', 'before', coalesce(v_before, 0))];
end $$;
