-- Returns the answer of a cancel per id, in the order of the ids (see cancel). It joins the lists: searching them for
-- each id would cost the square of their length. It has no settings of its own, so that it becomes a part of the
-- statement that calls it.
create or replace function sluice.cancel_answers(p_ids bigint[], p_gone bigint[], p_asked bigint[])
returns table (id bigint, answer text) language sql stable as $$
  select u.id,
    case
      when g.id is not null then 'cancelled'
      when s.id is not null then 'asked'
      when d.ended then 'over'
      when t.there then 'moving'
      else 'unknown'
    end
  from unnest(p_ids) with ordinality u(id, n)
  left join unnest(p_gone) g(id) on g.id = u.id
  left join unnest(p_asked) s(id) on s.id = u.id
  left join lateral (select true as ended from sluice.done k where k.id = u.id limit 1) d
    on g.id is null and s.id is null
  left join lateral (select true as there from sluice.task k where k.id = u.id limit 1) t
    on g.id is null and s.id is null and d.ended is null
  order by u.n
$$;
