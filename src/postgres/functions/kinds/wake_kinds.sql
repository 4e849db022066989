-- Resets kinds whose blocker has a slot again to blocker 0: kinds blocked by totals in `returned` or by totals that the
-- step has just freed slots of itself, and kinds whose blocker is fresh. Returns whether a note is left.
create or replace function sluice.wake_kinds(p_stream int, p_own_gates int[], p_own_n int[]) returns boolean
language plpgsql /* settings: index plans */ as $$
declare
  v_left boolean;
begin
  if exists (select from sluice.waiting_kind k where k.stream = p_stream and k.fresh) then
    -- guard: a fresh blocker is checked once more -> test/postgres/kinds.test.ts: "a slot returned while a claim finds its total full is not missed"
    update sluice.waiting_kind k set
      fresh = false,
      blocker = case
        when sluice.free_slots(k.blocker, p_own_gates, p_own_n) > 0 /* guard:fresh */ then /* end */ 0
        else k.blocker
      end
    where k.ctid = any (array(
      select f.ctid from sluice.waiting_kind f
      where f.stream = p_stream and f.fresh
      limit 256 for update skip locked));
  end if;
  if p_own_gates is null and not exists (select from sluice.returned r where r.stream = p_stream) then
    return false;
  end if;
  with note as (
    select r.ctid as tid, r.total from sluice.returned r where r.stream = p_stream limit 64 for update skip locked
  ), total as materialized (
    select n.total as id, sluice.free_slots(n.total, p_own_gates, p_own_n) as room
    from (select total from note union select unnest(p_own_gates)) n
  ), woken as (
    -- A few more than there are slots: some may wait for another total too.
    update sluice.waiting_kind k set blocker = 0, fresh = false
    where k.ctid = any (array(
      select w.tid
      from total t
      cross join lateral (
        select b.ctid as tid from sluice.waiting_kind b
        where b.stream = p_stream and b.blocker = t.id
        order by b.rank, b.turn
        limit case when t.room > 0 then least(t.room, 48) + 16 else 0 end for update skip locked) w))
    returning 1
  ), gone as (
    -- guard: a note stays while its total blocks anything -> test/postgres/kinds.test.ts: "a note of a returned slot is kept while another claim has locked the kind it wakes"
    delete from sluice.returned where ctid = any (array(
      select n.tid
      from note n
      join total t on t.id = n.total
      where t.room <= 0
        or /* guard:stays */ not /* end */ exists (
          select from sluice.waiting_kind b where b.stream = p_stream and b.blocker = t.id)))
    returning 1
  )
  select (select count(*) from note) > (select count(*) from gone) into v_left;
  return v_left;
end $$;
