-- Small shared words: clock, lane ids, errors, the barrier, the bell.

-- One clock for every lease and schedule: the database's. A function, so that a test can move it.
create function sluice.clock() returns timestamptz language sql volatile as $$ select clock_timestamp() $$;

create function sluice.lane_level(p_lane bigint) returns int language sql immutable parallel safe as
$$ select (p_lane >> 60)::int $$;

create function sluice.lane_place(p_lane bigint, p_rank smallint) returns smallint language sql immutable parallel safe as
$$ select case when p_lane >> 60 = 1 then 0::smallint else p_rank end $$;

-- md5 with a secret in front: nobody outside the database can search for collisions.
create function sluice.lane_id(p_level int, p_name text, p_secret text) returns bigint language sql immutable parallel safe as
$$ select (p_level::bigint << 60) | ('x' || substr(md5(p_secret || p_name), 1, 15))::bit(60)::bigint $$;

-- What one lane may hold. A limit that was removed limits nothing.
create function sluice.lane_cap(p_lane bigint, p_limit int) returns int language plpgsql stable as $$
begin
  if p_lane >> 60 = 1 then return 1; end if;
  return coalesce((select case when p_lane >> 60 = 2 then coalesce(l.per_key_override, l.per_key_declared)
                               else coalesce(l.total_override, l.total_declared) end
    from sluice.limits l where l.id = p_limit), 2147483647);
end $$;

-- The first of a task's limit lanes that holds more than its number allows now, as an index.
-- A lane above its number admits nothing, so it only shrinks: an unlocked read is good enough.
create function sluice.over_lane(p_lanes bigint[]) returns int language plpgsql stable as $$
begin
  return (select min(u.i)::int from unnest(p_lanes) with ordinality u(lane, i) join sluice.lane n on n.id = u.lane
    where u.lane >> 60 > 1 and n.used > n.cap);
end $$;

-- Errors carry their code in the constraint field, where the driver hands it to us untouched.
create function sluice.refuse(p_code text, p_message text) returns void language plpgsql as $$
begin
  raise exception using errcode = 'SLUIC', message = p_message, constraint = p_code;
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

create function sluice.barrier_alone() returns void language plpgsql set lock_timeout = '10s' as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform sluice.refuse('isolation_level', 'changing a limit needs READ COMMITTED');
  end if;
  perform pg_advisory_xact_lock('sluice.limits'::regclass::oid::int, 0);
end $$;

-- Wakes sleepers that serve one of these streams, one for every 50 tasks: no herd. NOTIFY takes a
-- global lock at commit, so nothing is sent unless somebody sleeps; polling stays the truth.
create function sluice.ring(p_streams int[], p_tasks int) returns void language plpgsql as $$
begin
  perform pg_notify('sluice', 'wake:' || w.id)
  from (select id from sluice.worker where asleep and streams && p_streams
        order by random() limit 1 + p_tasks / 50) w;
end $$;
