-- Small shared words: lane ids, errors, the barrier, the bell.

create function sluice.lane_place(p_lane bigint, p_rank smallint) returns smallint language sql immutable parallel safe as
$$ select case when p_lane >> 60 in (1, 2) then 0::smallint else p_rank end $$;

-- md5 with a secret in front: nobody outside the database can search for collisions.
create function sluice.lane_id(p_level int, p_name text, p_secret text) returns bigint language sql immutable parallel safe as
$$ select (p_level::bigint << 60) | ('x' || substr(md5(p_secret || p_name), 1, 15))::bit(60)::bigint $$;

-- What one lane may hold. A limit that was removed limits nothing. A window is shut while its run is paused, or
-- the rest of its items is being given up; once its node is over it shuts nobody out, and its row goes.
create function sluice.lane_cap(p_lane bigint, p_limit int) returns int language plpgsql stable as $$
begin
  if p_lane >> 60 = 1 then return 1; end if;
  if p_lane >> 60 = 2 then
    return coalesce((select case when (n.failing or r.paused) and n.state in ('u', 'r') then 0 else n.window_size end from sluice.workflow_node n join sluice.workflow_run r on r.id = n.run where n.lane = p_lane), 2147483647);
  end if;
  return coalesce((select coalesce(l.per_key_override, l.per_key_declared) from sluice.limits l where l.id = p_limit), 2147483647);
end $$;

-- What a lane may hold by its row: its own number, or its limit's. Where many lanes are looked at the same is written out.
create function sluice.cap_of(p_cap int, p_limit int) returns int language sql stable as $$
  select coalesce(p_cap,
    (select coalesce(l.per_key_override, l.per_key_declared) from sluice.limits l where l.id = p_limit), 2147483647)
$$;

-- The first of a task's limit lanes that holds more than its number allows now, as an index.
-- A lane above its number admits nothing, so it only shrinks: an unlocked read is good enough.
create function sluice.over_lane(p_lanes bigint[]) returns int language plpgsql stable as $$
begin
  return (select min(u.i)::int from unnest(p_lanes) with ordinality u(lane, i) join sluice.lane n on n.id = u.lane
    where u.lane >> 60 > 1 and n.used > coalesce(n.cap,
      (select coalesce(l.per_key_override, l.per_key_declared) from sluice.limits l where l.id = n.limit_id), 2147483647));
end $$;

-- The totals that a task's gate stands for.
create function sluice.gates_of(p_gate int) returns int[] language plpgsql stable as $$
begin
  if p_gate > 0 then return array[p_gate]; end if;
  if p_gate = 0 then return '{}'; end if;
  return (select s.gates from sluice.gate_set s where s.id = p_gate);
end $$;

-- The gate of a task with these totals. A new set is made at a deploy, outside of users' transactions, but for sets that
-- are decided in code: there the first enqueue makes it, which may stay open for minutes. Others that come before its end
-- make the set once more and wait for nobody; the oldest that can be seen is taken from then on.
create function sluice.gate_of(p_totals int[]) returns int language plpgsql as $$
declare v_id int;
begin
  if coalesce(cardinality(p_totals), 0) = 0 then return 0; end if;
  if cardinality(p_totals) = 1 then return p_totals[1]; end if;
  select id into v_id from sluice.gate_set where gates = p_totals order by id desc limit 1;
  -- guard: a new set waits for nobody -> test/postgres/attacks.test.ts: "a new set of totals in an open transaction blocks nobody who needs it"
  if not found then
    insert into sluice.gate_set (gates) values (p_totals) returning id into v_id;
    insert into sluice.gate_member (total, gate) select t, v_id from unnest(p_totals) t;
  end if;
  return v_id;
end $$;

-- Slots per total of a list of gates: of how many tasks each is the gate.
create function sluice.slots_of(p_gates int[], p_n int[], out gates int[], out n int[]) language plpgsql stable as $$
begin
  if 0 <= all (p_gates) then
    select array_agg(x.gate order by x.gate), array_agg(x.n order by x.gate) into gates, n
    from (select u.gate, sum(u.n)::int as n from unnest(p_gates, p_n) u(gate, n) where u.gate > 0 group by u.gate) x;
  else
    select array_agg(x.gate order by x.gate), array_agg(x.n order by x.gate) into gates, n
    from (select g.gate, sum(u.n)::int as n from unnest(p_gates, p_n) u(gate, n) cross join lateral unnest(sluice.gates_of(u.gate)) g(gate) group by g.gate) x;
  end if;
end $$;

-- Errors carry their code in the constraint field, where the driver hands it to us untouched, and in
-- the hint, which is all that some libraries pass on. A name in the message may be of any length, and what matters may
-- stand behind it: the middle is cut out.
create function sluice.refuse(p_code text, p_message text) returns void language plpgsql as $$
begin
  if length(p_message) > 1000 then p_message := left(p_message, 300) || '…' || right(p_message, 300); end if;
  raise exception using errcode = 'SLUIC', message = p_message, constraint = p_code, hint = p_code;
end $$;

-- The barrier makes "after limits.set has returned, nothing is admitted above the new number" true.
-- Whatever admits or claims holds it shared until it commits; whatever changes a number holds it
-- alone. It is taken before any row lock, so it is first in the lock order. An advisory lock and not
-- a table lock: a backup reads every table for hours and must not stop either side.
-- Functions that run inside a user's transaction never take it: they only append.
create function sluice.barrier_shared() returns void language plpgsql as $$
begin
  -- guard: isolation -> test/postgres/attacks.test.ts: "attack 3: another isolation level is refused"
  if current_setting('transaction_isolation') <> 'read committed' then
    perform sluice.refuse('isolation_level', 'Sluice needs READ COMMITTED: under ' || current_setting('transaction_isolation') || ' a freed slot could miss its next waiter');
  end if;
  perform pg_advisory_xact_lock_shared('sluice.limits'::regclass::oid::int, 0);
end $$;

-- Whoever waits for it has all others wait behind him, so he queues for a moment at a time.
create function sluice.barrier_alone() returns void language plpgsql set lock_timeout = '250ms' as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform sluice.refuse('isolation_level', 'changing a limit needs READ COMMITTED');
  end if;
  for v_try in 1..20 loop
    begin
      perform pg_advisory_xact_lock('sluice.limits'::regclass::oid::int, 0);
      return;
    exception when lock_not_available then
      if v_try = 20 then raise; end if;
      perform pg_sleep(0.25);
    end;
  end loop;
end $$;

-- Wakes sleepers that serve one of these streams, one per 50 tasks, and tells each one its share. NOTIFY takes a global
-- lock at commit and signals every backend of the database that listens, so nothing is sent unless a worker on call
-- sleeps; polling stays the truth. PostgreSQL prepares no transaction that has notified, so PREPARE TRANSACTION needs
-- sluice.ring = off.
create function sluice.ring(p_streams int[], p_tasks int) returns void language plpgsql as $$
begin
  -- In two parts, or the name of the schema would be quoted within it.
  if current_setting('sluice' || '.ring', true) = 'off' then return; end if;
  perform pg_notify('sluice', 'wake:' || w.id || ':' || ceil(p_tasks::numeric / count(*) over ()))
  from (select id from sluice.worker
        -- guard: workers in reserve are not rung -> test/postgres/on-call.test.ts: "a ring reaches a worker that is on call, however many sleep in reserve"
        where asleep and on_call_since is not null and capacity_available > 0 and not draining
          and expires_at > sluice.clock() and streams && p_streams
        order by random() limit 1 + p_tasks / 50) w;
end $$;

-- Tasks of these streams, mostly one of each, can be claimed since this transaction. Each stream is rung for by itself:
-- different workers may serve them.
create function sluice.ring_streams(p_streams int[]) returns void language plpgsql as $$
begin
  if p_streams is null or not exists (select from sluice.worker where asleep) then return; end if;
  perform sluice.ring(array[s], count(*)::int) from unnest(p_streams) s group by s;
end $$;
