-- The data model. One immutable row per task, one narrow table per live state, then `done`.
--
-- A task is in exactly one of scheduled, waiting, parked, parent, ready, gated, suspect, running, done. A transition
-- is a DELETE from one table and an INSERT into another in one transaction. Rows of these tables are never UPDATEd (but
-- for suspect.reserved_by): the hot statements address them by ctid, which an UPDATE would move.
--
-- Words:
--   rank   -priority, so that every index ascends.
--   lane   Anything narrow with a capacity. Its id is level << 60 | 60 bits: of a keyed hash of its name, or for a
--          window of a sequence. The levels are
--            1  an order key
--            2  a window of a fan-out
--            3  a key of a limit
--          A task passes its lanes by level, and keys by the id of their limit. A window stops only items of its own
--          fan-out, so it comes before what others share.
--   limit  The limit of a lane (lane_limits, limit_id) is the id of a row in `limits` for a key of a limit, and else
--          order_limit(), blocking_limit() (an order key that a final failure blocks) or window_limit(). A note of
--          freed slots (dirty) has 0 for any lane.
--   gate   A limit's total, taken when a task is claimed. Zero means "no gate". A task of several totals has a negative
--          gate, which stands for all of them (gate_set), so that every total is counted in one place.
--   kind   A stream and a gate.
--   no_limit() stands for "no limit" wherever a number of slots is stored.
--
-- Numbers with a meaning are named by functions (functions/base), which the planner replaces by the number.

-- States of done, workflow_run and workflow_node, each of which uses some of them. A node is pending until its
-- dependencies have ended. placing: its tasks are to be created. held: it could begin, but its run is paused.
-- skipped_by_failure: what it needs failed. skipped_by_condition: a condition says so.
create type sluice.state as enum (
  'pending', 'held', 'placing', 'running', 'succeeded', 'failed', 'cancelled',
  'skipped_by_failure', 'skipped_by_condition');

-- What becomes of a task in hand that has not succeeded (see settle). release: it is handed back. wait: for its
-- children. invalid: its input is not what it takes, which is a retry, but a failure if the input was rendered from
-- outputs of other nodes, which stay what they are.
create type sluice.settlement as enum ('retry', 'fail', 'cancel', 'snooze', 'release', 'wait', 'invalid');

-- Kinds of nodes; what a dependency must have done; what a node with items does when one fails (none: it has no tasks).
create type sluice.node_kind as enum ('task', 'each', 'when', 'sleep', 'waitFor');
create type sluice.dependency as enum ('success', 'failure', 'end', 'then', 'else');
create type sluice.node_policy as enum ('task', 'failFast', 'finish', 'collect', 'none');

-- What becomes of a node when a dependency has ended (see workflow_fates): it stays blocked, enters the state of that
-- name, or begins: make_task with its task, make_items with its items, begin without tasks.
create type sluice.fate as enum (
  'blocked', 'held', 'placing', 'failed', 'skipped_by_failure', 'skipped_by_condition',
  'make_task', 'make_items', 'begin');

-- Column defaults call it, so it must exist before the tables. Its text is in functions/base/clock.sql.
create function sluice.clock() returns timestamptz language sql volatile as $$ select clock_timestamp() $$;

-- Settings of this schema.
create table sluice.setting (
  name text primary key,
  value text not null
);
-- The secret of lane ids: a tenant that chooses its own keys cannot craft two that share a lane (attack 13).
insert into sluice.setting values ('lane_secret', gen_random_uuid()::text);

-- Limits, and the only place where their numbers are stored. A declared number that is null means that the limit has no
-- such part, and its tasks carry no slot of it. An override is the operator's number, which counts before the declared.
-- Names are compared by bytes, so that the index serves pages and prefixes (limits.list).
-- transient: created by an enqueue, as a group or a limit that code decides by input; it is forgotten when it has been
-- unused for long (forget_limits). unused_since: when the keeper found that no task refers to it; null once it is
-- declared again.
create table sluice.limits (
  id int generated always as identity primary key,
  name text collate "C" not null unique,
  transient boolean not null default false,
  unused_since timestamptz,
  total_declared int check (total_declared >= 0),
  total_override int check (total_override >= 0),
  per_key_declared int check (per_key_declared >= 0),
  per_key_override int check (per_key_override >= 0),
  check (num_nonnulls(total_declared, per_key_declared) > 0),
  check (total_override is null or total_declared is not null),
  check (per_key_override is null or per_key_declared is not null)
);

-- What the database knows about a task type, so that an enqueue from SQL cannot bypass a limit. gate: the type's own
-- limit, 0 for none. limit_ids: null when code decides the limits.
create table sluice.contract (
  type text primary key,
  queue text not null,
  priority smallint not null,
  attempts_max smallint not null,
  ordered boolean not null,
  order_scope text,
  order_blocks boolean not null,
  gate int not null default 0,
  limit_ids int[]
);

-- Queues. paused: no task of the queue is claimed.
create table sluice.queue (
  name text primary key,
  paused boolean not null default false
);

-- A stream is an interned (queue, type). It leads the indexes of ready and gated, so that half a million tasks of a
-- type that a worker does not serve cost its claims nothing. gate: the type's own limit, 0 for none. paused: the
-- queue is.
-- laned: its tasks may hold slots before they run. unserved: no live worker serves it, as far as the keeper has seen.
-- many: its tasks use so many totals that claims find open ones through waiting_kind.
create table sluice.stream (
  id int generated always as identity primary key,
  queue text not null,
  type text not null,
  gate int not null default 0,
  paused boolean not null default false,
  laned boolean not null default false,
  unserved boolean not null default false,
  many boolean not null default false,
  unique (queue, type)
);
create index stream_many on sluice.stream (id) where many;

-- The streams that may have tasks of a total: where a slot could be of better use (attack 11).
create table sluice.gate_stream (
  gate int not null,
  stream int not null,
  primary key (gate, stream)
);
create index gate_stream_stream on sluice.gate_stream (stream);

-- Sets of totals that tasks pass together, ascending. Not unique: a transaction that needs a new set must not wait for
-- another open transaction that has created it. Two ids of one set mean the same, because its totals are what counts.
create table sluice.gate_set (
  id int generated always as identity (
    increment by -1 start with -1 minvalue -2147483648 maxvalue -1) primary key,
  gates int[] not null
);
create index gate_set_gates on sluice.gate_set (gates, id desc);
-- The sets that a total is part of.
create table sluice.gate_member (
  total int not null,
  gate int not null,
  primary key (total, gate)
);

create sequence sluice.task_id;

-- Turns are places in line among tasks of one rank, for ready and gated. A task without lanes has its own turn, by its
-- id. A task that passes its lanes draws the next turn: after all tasks enqueued until then, before all that come
-- later, and among those that pass meanwhile in the order in which they do. So keys take turns: a key with a thousand
-- older tasks does not make a new key wait. A task that is handed back has its own turn again, before all that came
-- since.
-- The maximum has as many bits as turn_bits().
create sequence sluice.turn maxvalue 1048575 cycle;

-- Tasks. Rows are never updated.
-- lanes: ascending by (level, limit). lane_limits: the limit of each lane (see the top). lane_keys: their names, for
-- people. trace: the W3C trace context of the enqueue, for executions to link to; null without tracing. due_at: when it
-- was first to run, if that was later than its enqueue. nonce: random, because ids are issued again after a restore or
-- an asynchronous failover; with the id it never repeats. The time is mixed in for sessions that call setseed().
create table sluice.task (
  id bigint primary key,
  nonce bigint not null default
    (random() * 9007199254740991)::bigint # (date_part('epoch', clock_timestamp()) * 1000000)::bigint,
  stream int not null,
  rank smallint not null,
  attempts_max smallint not null,
  gate int not null,
  lanes bigint[],
  lane_limits int[],
  lane_keys text[],
  input json not null,
  created_at timestamptz not null default sluice.clock(),
  trace text,
  due_at timestamptz
);

-- Finds the tasks, live or in history, that refer to a total or a set: a group without any can be forgotten.
create index task_gate on sluice.task (gate) where gate <> 0;

-- Tasks that can be claimed, without a gate. lanes: those of which it holds a slot.
-- attempt, here and below: attempts used so far. Only in running does it include the current one. late, here and below:
-- the lanes of which it got a slot only after it had found all slots in use, one bit each, for metrics; null is 0.
create table sluice.ready (
  id bigint not null, stream int not null, rank smallint not null, attempt smallint not null,
  turn bigint not null, lanes bigint[], late smallint
);
create index ready_next on sluice.ready (stream, rank, turn);
create index ready_laned on sluice.ready (id) where lanes is not null;
-- Holders of a lane, for shed. A task of several lanes is found by its last one only; tasks without a key or a window
-- cost nothing. Lanes above level 1 are windows and keys. The predicate is written out here, as in gated_holder: an
-- index keeps the expression itself, and statements match it because sluice.lane_level is inlined.
create index ready_holder on sluice.ready ((lanes[cardinality(lanes)]), rank, id)
  where lanes[cardinality(lanes)] >> 60 > 1;

-- Like ready, but the task needs a slot of `gate`, of which it holds none.
create table sluice.gated (
  id bigint not null, stream int not null, gate int not null, rank smallint not null,
  attempt smallint not null, turn bigint not null, lanes bigint[], late smallint
);
create index gated_next on sluice.gated (stream, gate, rank, turn);
create index gated_laned on sluice.gated (id) where lanes is not null;
create index gated_holder on sluice.gated ((lanes[cardinality(lanes)]), rank, id)
  where lanes[cardinality(lanes)] >> 60 > 1;

-- Kinds of a stream with many totals that may have tasks in gated; see functions/kinds/note_waiting.sql. blocker: a
-- total that a claim found full, 0 for none. fresh: the claim that found it full may have missed a slot that came back
-- meanwhile. rank, turn: of its first task at that time.
create table sluice.waiting_kind (
  stream int not null, gate int not null, blocker int not null default 0, fresh boolean not null default false,
  rank smallint not null default 0, turn bigint not null default 0
);
create index waiting_kind_next on sluice.waiting_kind (stream, blocker, gate);
create index waiting_kind_blocked on sluice.waiting_kind (stream, blocker, rank, turn) where blocker > 0;
create index waiting_kind_fresh on sluice.waiting_kind (stream) where fresh;
-- Notes that a slot of a total of such a stream came back: kinds that the total blocks may be open.
create table sluice.returned (
  stream int not null, total int not null
);
create index returned_next on sluice.returned (stream, total);

-- Tasks that wait at lane = lanes[held + 1] and hold a slot of each lane before it. place: 0 for an order key and a
-- window, where priority is ignored; else the rank. turn: the one that it had drawn before it gave its slots back, if
-- it has; it gets that one again.
create table sluice.waiting (
  id bigint not null, lane bigint not null, place smallint not null, rank smallint not null,
  attempt smallint not null, held smallint not null, stream int not null, gate int not null,
  lanes bigint[] not null, lane_limits int[] not null, late smallint not null default 0, turn bigint
);
create index waiting_next on sluice.waiting (lane, place, id);
-- By kind and by the key needed next, for keys of limits only (level 3: from 3 << 60 on). It finds tasks that wait at a
-- key behind tasks that cannot run now, see open_waiters.
create index waiting_by_kind on sluice.waiting (lane, stream, gate, (coalesce(lanes[held + 2], 0)), place, id)
  where lane >= 3458764513820540928;
-- Tasks that hold a slot of a key of a limit (from 3 << 60 on) and wait for another lane.
create index waiting_holding on sluice.waiting (id) where held > 0 and lanes[held] >= 3458764513820540928;

-- Tasks that run later. held: 1 when a retry or a snooze keeps the slot of its order key.
create table sluice.scheduled (
  id bigint not null, run_at timestamptz not null, attempt smallint not null, held smallint not null
);
create index scheduled_next on sluice.scheduled (run_at, id);
create index scheduled_id on sluice.scheduled (id);

-- Tasks that cannot run now. They have left the line and hold at most the slot of their order key (held = 1), so that
-- they starve no task that shares a limit with them. lane: the key they waited for, 0 for none. turn: as in waiting.
create table sluice.parked (
  id bigint primary key, stream int not null, gate int not null, rank smallint not null, attempt smallint not null,
  held smallint not null, lane bigint not null default 0, turn bigint
);
create index parked_by_kind on sluice.parked (stream, gate, rank, id);

-- Kinds of tasks (gate 0: the whole stream) that cannot run now and were found to keep slots of keys from others: they
-- are not served, paused, or at a full total. With a lane only tasks that need this key next, which is full. Keys
-- skip a kind while it is here. at: since when. n: the number by which lanes are postponed for it.
create table sluice.stuck (
  stream int not null, gate int not null, lane bigint not null default 0,
  at timestamptz not null default sluice.clock(), n bigint generated always as identity unique,
  primary key (stream, gate, lane)
);

-- Tasks that wait for one of `runs`, their children, to end. Hold at most the slot of their order key (held = 1).
create table sluice.parent (
  id bigint primary key, attempt smallint not null, held smallint not null, runs bigint[] not null
);

-- Tasks that three workers crashed with. They are claimed alone. reserved_by: the worker that empties itself for it.
create table sluice.suspect (
  id bigint primary key, stream int not null, attempt smallint not null, lanes bigint[],
  reserved_by bigint
);
-- The workers that had a task in hand when their lease ended. Only the transaction that has taken a task out of its
-- state table changes its row here, so two never wait for each other; reapers insert in the order of ids all the same.
create table sluice.crash (
  id bigint primary key, workers bigint[] not null
);

-- Tasks in hand of a worker. claim: the call that claimed it. gate, stream_gate: the gates of which it holds a slot.
create table sluice.running (
  id bigint primary key, claim bigint not null, worker bigint not null, attempt smallint not null,
  started_at timestamptz not null, gate int not null, stream_gate int not null, lanes bigint[]
);

-- History.
create table sluice.done (
  id bigint not null, state sluice.state not null check (state in ('succeeded', 'failed', 'cancelled')),
  attempt smallint not null,
  worker bigint, started_at timestamptz, finished_at timestamptz not null, outcome json
);
create index done_id on sluice.done (id);
-- Only failed and cancelled tasks, which people search for. History is pruned by sweeping the table (see prune_done):
-- an index by age over every success would cost an eighth of a drain's database time.
create index done_ended on sluice.done (state, finished_at) where state <> 'succeeded';
-- How far the sweep has come: one row. due: blocks left of this turn.
create table sluice.sweep (
  block bigint not null, due int not null, turn_at timestamptz not null
);
insert into sluice.sweep values (0, 0, '-infinity');

-- Failed tasks that still hold their order key (onFailure: "block").
create table sluice.block (
  id bigint primary key, lane bigint not null
);

-- Requests to stop a running task. Not unique: a request must not wait for another's open transaction that asks for the
-- same.
create table sluice.stop (
  id bigint not null, reason text
);
create index stop_id on sluice.stop (id);

-- Tasks whose outcome a client waits for: it is kept for a moment even where history is off, and announced.
create table sluice.awaited (
  id bigint not null, until timestamptz not null
);
create index awaited_id on sluice.awaited (id);

-- Idempotency keys. type: of the task; for a workflow see workflow_start. digest: of the input.
create table sluice.idempotency (
  type text not null, key text not null, id bigint not null, digest text not null,
  expires_at timestamptz not null,
  primary key (type, key)
);
create index idempotency_prune on sluice.idempotency (expires_at);

-- Lanes. A row exists while a task holds or wants a slot. cap: the capacity of an order key or a window; null for a key
-- of a limit, whose number is in `limits` only, so that changing it changes one row however many keys are in use.
-- limit_id: see the top.
create table sluice.lane (
  id bigint primary key, limit_id int not null, cap int, used int not null check (used >= 0)
) with (fillfactor = 50);
create index lane_limit on sluice.lane (limit_id) where limit_id <> 0;

-- Limits with a lane above its number, since the number was lowered; -2 stands for all windows. While a row is here,
-- claims skip tasks that hold a slot of such a lane: starting them would exceed the number.
-- after, turn: how far the keeper has come with the lanes, and with tasks that no index finds (see shed).
create table sluice.lowered (
  limit_id int primary key, after bigint not null default 0, turn int not null default 0
);
-- Lanes above their number, of limits that were lowered. Nothing is admitted to them, so no lane is added later.
create table sluice.excess (
  limit_id int not null, lane bigint not null,
  primary key (limit_id, lane)
);
-- Limits per key whose number has changed. The lanes up to `after` have been examined (see follow_limit).
create table sluice.changed (
  limit_id int primary key, after bigint not null
);

-- Append-only notes for the next claim: a task joined this lane (freed = 0), or that many of its slots were freed
-- inside a user's transaction, which must not hold a lane lock.
create table sluice.dirty (
  n bigint generated always as identity, lane bigint not null, limit_id int not null, freed int not null default 0
);
create index dirty_next on sluice.dirty (n);

-- Lanes with room whose waiters an open transaction has locked (a cancel that is not committed). blocker: the id of
-- that transaction; 0 if it could not be determined; the negated n of a row in `stuck` if a stuck kind is the reason.
-- A lane has a row for every transaction that it waits for. The keeper turns rows into notes once the transaction has
-- ended; until then the lane costs nothing, however long the transaction stays open.
create table sluice.postponed (
  blocker bigint not null, lane bigint not null, limit_id int not null
);
create index postponed_blocker on sluice.postponed (blocker, lane);

-- Counters of totals. Slots in use = used - sum(credit). Nothing waits for a locked counter: slots that come back
-- meanwhile are appended to credit, and the next transaction that locks the counter absorbs them.
-- full_at: until when all slots were in use, the last time, while used is below cap; see full_until. kept_for: the task
-- that one slot is kept for, if it was overtaken for too long (see keep_slots).
create table sluice.gate (
  id int primary key, cap int not null check (cap >= 0), used int not null default 0,
  full_at timestamptz not null default '-infinity', kept_for bigint
) with (fillfactor = 20);
create index gate_kept on sluice.gate (id) where kept_for is not null;
create index gate_shut on sluice.gate (id) where cap = 0;
-- Slots that came back to a gate.
create table sluice.credit (
  gate int not null, n int not null check (n > 0), at timestamptz not null default sluice.clock()
);
create index credit_gate on sluice.credit (gate);

-- Workers. The id is random, so that no zombie shares it after a failover that loses sequence values. connections: the
-- most that its process may open, so that workers that start later can check whether there is room. pressure: what
-- reduces or stops its claims, as of its last heartbeat.
-- on_call_since: null for a worker in reserve, which does not listen and is not rung (see go_on_call). busy: it had
-- tasks in hand at its last heartbeat.
create table sluice.worker (
  id bigint primary key, name text not null, streams int[] not null, lease_ms int not null,
  expires_at timestamptz not null, started_at timestamptz not null default sluice.clock(),
  connections int not null,
  capacity_max int not null, capacity_available int not null, memory_bytes bigint not null default 0,
  asleep boolean not null default false, draining boolean not null default false,
  on_call_since timestamptz, busy boolean not null default false,
  pressure text not null default 'normal' check (pressure in ('normal', 'reduced', 'stopped')),
  pressure_reasons text[] not null default '{}'
) with (fillfactor = 50);

-- Small tables that churn: vacuum early and without pausing, or claims walk over dead rows.
do $$
declare name text;
begin
  foreach name in array array[
    'ready', 'gated', 'waiting', 'scheduled', 'running', 'dirty', 'postponed', 'lane', 'gate', 'credit', 'awaited',
    'waiting_kind', 'returned'] loop
    execute format('alter table sluice.%I set (
      autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
      autovacuum_vacuum_insert_scale_factor = 0.2)', name);
  end loop;
end $$;

-- A publication FOR ALL TABLES refuses updates and deletes of a table without a replica identity. These tables have no
-- primary key, because one more index would cost every task. The whole row as identity costs nothing unless wal_level
-- is logical (docs/operate/replication.md).
do $$
declare name text;
begin
  foreach name in array array[
    'ready', 'gated', 'waiting', 'scheduled', 'done', 'sweep', 'stop', 'awaited', 'dirty', 'postponed', 'credit',
    'waiting_kind', 'returned'] loop
    execute format('alter table sluice.%I replica identity full', name);
  end loop;
end $$;

-- The head of ready(stream), or of gated(stream, gate). room, stream_room: the free slots of its gate and of its
-- stream's gate.
create type sluice.source as (
  stream int, gate int, stream_gate int, rank smallint, turn bigint, id bigint, room int, stream_room int);

-- A row of step: a claimed task, or a report about the call, which has nothing but `report`:
--   {"refused": n}: so many of the settles were refused, because the tasks were no longer the worker's.
--   {"unplaced": true}: tasks of a run are to be placed, by code that knows them or because they are many.
--   {"searchMs": ms, "heads": [[stream, gate, rank, turn]]}: the search for tasks took long or began at spots.
-- holds: how many slots a task holds, and so how many others its end may let through, at most. trace: the trace
-- context of its enqueue, or null. passed: numbers split by commas. The first says for how many milliseconds the task
-- had been due, -1 if it was tried before. Without p_meters it stands alone, and only with the first task of the first
-- source, unless that was tried before: one task per claim is enough to know how long tasks wait. With p_meters every
-- task with limits has it, followed by what the task passed: each of its totals, by the id of its limit, and how many
-- milliseconds ago that was full (-1: until now; never_ms(): never); and if it has lanes 0, its `late`, and the
-- limit of each lane.
create type sluice.claimed as (
  id bigint, stream int, attempt smallint, input json, holds smallint, trace text, passed text, nonce bigint,
  report json
);

-- What settles took out of `running`; gates and stream_gates: of each task, 0 for none.
create type sluice.gone as (settled bigint[], lanes bigint[], gates int[], stream_gates int[]);

-- What the settles of a step freed. refused: how many were not recorded. gates, gates_n: slots of totals. With gates
-- also kept: slots are kept for some task; many: some stream has many totals.
create type sluice.freed as (
  settled bigint[], refused int, lanes bigint[], gates int[], gates_n int[], kept boolean, many boolean
);

-- How a step takes from one source; see plan_sole_source. take: how many, null if plan_claim decides. locked: the
-- counter of `total` is locked, its credits were absorbed, and it was full until full_until.
create type sluice.sole_plan as (take int, total int, absorbed int, full_until timestamptz, locked boolean);

-- How a step takes from several sources; see plan_claim. wants: of each source. For each of gates: own: slots that the
-- step freed; the others as in lock_gates. ring: streams of other workers that a slot was left for.
create type sluice.claim_plan as (
  gates int[], wants int[], own int[], locked boolean[], absorbed int[], full_until timestamptz[], ring int[]
);

-- Where the head of a source was, some claims ago.
create type sluice.spot as (stream int, gate int, rank smallint, turn bigint);

-- The leader: the worker that does the duties of functions/keep. A hint that saves the others the work and no fence:
-- each duty is safe for any number of callers. until: a leader that has not looked again by then is replaced.
-- next_at: when the leader looks next. It may look earlier, but never puts this off: see poll_by.
-- The lock on this row is the last that a transaction takes, and is held for no other statement.
create table sluice.keeper (
  one boolean primary key default true check (one),
  leader bigint not null default 0,
  until timestamptz not null default '-infinity',
  next_at timestamptz not null default '-infinity'
) with (fillfactor = 10);

-- Answers of manual retries, by a token of the call: a call whose reply was lost is repeated under the same token and
-- gets the same answer. Kept for ten minutes; each retry deletes some that are older.
create table sluice.retried (
  token bigint primary key, answer int not null, at timestamptz not null default sluice.clock()
);
create index retried_at on sluice.retried (at);

-- Recurring schedules. A row says what to enqueue and when next. The keeper of any worker enqueues it, even one that
-- does not know the task, because what only code can decide (order key, limits and their keys) was decided when the
-- schedule was set. Limits are stored by name: their numbers are looked up when the task is claimed, as for any other
-- task.
--
-- How a tick is enqueued exactly once. A keeper reads a row that is due and computes, from the clock of the database,
-- which ticks to enqueue and when the next one is. Then one statement locks the row, checks that its revision is still
-- the one that was read, enqueues and moves the row on. Every change of a row gives it a revision that no row ever had:
-- of any number of keepers one finds the revision it read, and a statement that was sent twice, or whose reply was
-- lost, finds another revision the second time.
--
-- The lock on a schedule's row guards its revision and with it next_at. One is taken per transaction, and never inside
-- a user's transaction. Its holder takes none of the locks of the order (barrier, running rows, lanes, gates)
-- afterwards: an enqueue only inserts. So it cannot be part of a cycle.
create sequence sluice.schedule_revision;

-- limit_keys: the key for each of limit_names, '' for a limit without keys. input: a text that equals the mark of the
-- client stands for the time of the tick. digest: of everything that `set` was given. enabled: set by code. paused: set
-- by the operator. next_at: the time of the next tick. due_at: when to look at it, which is later after a refusal
-- (trouble). Both are null while it does not tick.
create table sluice.schedule (
  name text primary key,
  digest text not null,
  stream int not null,
  input json not null,
  cron text,
  time_zone text,
  every_ms bigint check (every_ms > 0),
  missed text not null check (missed in ('skip', 'once', 'all')),
  priority int not null,
  attempts int not null,
  order_key text,
  order_blocks boolean not null,
  limit_names text[] not null,
  limit_keys text[] not null,
  enabled boolean not null,
  paused boolean not null default false,
  next_at timestamptz,
  due_at timestamptz,
  last_at timestamptz,
  last_task bigint,
  trouble text,
  revision bigint not null default nextval('sluice.schedule_revision'),
  check (num_nonnulls(cron, every_ms) = 1),
  check ((cron is null) = (time_zone is null)),
  check (cardinality(limit_names) = cardinality(limit_keys)),
  check ((next_at is not null) = (enabled and not paused)),
  check ((next_at is null) = (due_at is null))
) with (fillfactor = 70);
create index schedule_due on sluice.schedule (due_at, name) where due_at is not null;

-- Workflows. A graph is plain data, compiled to steps once, when it is declared. A run of it is rows: one per run,
-- one per node, and one per task that tells where the task belongs. Tasks of a run are ordinary tasks.
--
-- The compiled steps that workflow_declare takes (CompiledStep in src/postgres/workflow/declare.ts) are a JSON list,
-- one object per node in the order of their numbers, which begin with 1, and at most 500 of them:
--   {"name", "kind": "task"|"each"|"when"|"sleep"|"waitFor",
--    "after": [{"node": 1, "on": "success"|"failure"|"end"|"then"|"else", "recovers": false}],
--    task, each: "type", "queue", "priority"?, "attempts"?, "input": T; each: "items": T, "window"?, "onError"?
--    when: "ref": T, "is", "value"?; sleep: "ms" or "until": T; waitFor: "event", "timeoutMs"?}
-- T is a template: {"parts": [text], "nodes": [n], "paths": [[text]]}, JSON text with holes. Rendered it is the first
-- part, the value of the first reference, the second part and so on; n is a node's number, 0 for the input of the run,
-- -1 for the item and -2 for its index (see input_ref). So rendering needs no recursion and keeps every text as it was
-- written.
--
-- The states of a node: pending, then running, if need be after placing or held; then succeeded, failed, cancelled or
-- skipped. A run is running, and then succeeded, failed or cancelled.
--
-- Locks. The row of workflow_run guards everything of its run: the states and counters of nodes, `open`, windows. It is
-- locked by a statement of its own, several in the order of their ids, after running rows and crash rows and before
-- lanes: barrier -> running rows -> crash -> workflow_run by id -> lanes -> gates. What is read after it needs a later
-- snapshot, so counters are read and changed by later statements. Exactly one completer sees the last count, because
-- counters, and rows of workflow_again, change only under the lock. Rows of workflow_note, workflow_unplaced,
-- workflow_halt and workflow_orphan are taken with SKIP LOCKED, so nothing waits for a transaction that holds one and
-- waits for a run's row. A run that a handler made is newer than the run of its task, so its id is higher: its maker
-- locks the older run first, FOR KEY SHARE, and reads whether it is paused. A pause, a resume and a prune lock the row
-- FOR UPDATE; everything else FOR NO KEY UPDATE, which does not wait for fan-outs that are being made, so that many of
-- them cannot delay a settle. Starting a run only inserts, and keeps its graph (workflow_keep_graph) before all else.
create sequence sluice.workflow_declared;

-- Declared graphs, one row per text (digest) of a name.
create table sluice.workflow_graph (
  id int generated always as identity primary key,
  name text not null,
  digest text not null,
  graph json not null,
  -- The result of a run: a template, or null for the outputs of the nodes without a successor.
  parts text[], ref_nodes smallint[], ref_paths text[],
  created_at timestamptz not null default sluice.clock(),
  -- Increased by every declaration of this graph: a start by name takes the highest of that name.
  declared bigint not null default nextval('sluice.workflow_declared'),
  unique (name, digest)
);

-- The steps of a graph, one per node. ref_paths: each the text of a text[]. over_*: the template of
-- items, of the value that a condition tests, or of a time.
create table sluice.workflow_step (
  graph int not null, node smallint not null, name text not null, kind sluice.node_kind not null,
  deps smallint[] not null, dep_on sluice.dependency[] not null, dep_recovers boolean[] not null,
  successors smallint[] not null,
  stream int, rank smallint, attempts smallint,
  parts text[], ref_nodes smallint[], ref_paths text[],
  over_parts text[], over_nodes smallint[], over_paths text[],
  window_size int, policy sluice.node_policy not null,
  test text, test_value json, ms bigint, event text,
  primary key (graph, node)
);

create sequence sluice.workflow_id;
create sequence sluice.workflow_lane;

-- Runs. graph: null for a fan-out that a handler made; then parent is its task, name the fan-out's, and outer_run the
-- run that this task belongs to, null if it belongs to none. open: how many nodes have not
-- ended. stopping: it was cancelled. pruning: it was too old, and some of its tasks are deleted already. outcome:
-- why it was cancelled.
create table sluice.workflow_run (
  id bigint primary key, graph int, state sluice.state not null default 'running', open smallint not null,
  paused boolean not null default false, stopping boolean not null default false,
  pruning boolean not null default false,
  input json not null, bytes_max int not null, parent bigint, name text, outer_run bigint,
  created_at timestamptz not null default sluice.clock(), finished_at timestamptz, outcome json
) with (fillfactor = 45);
create index workflow_live on sluice.workflow_run (id) where finished_at is null;
create index workflow_graph_runs on sluice.workflow_run (graph, id);
-- The runs that an operator searches for, among any number that succeeded.
create index workflow_unlucky on sluice.workflow_run (state, graph, id)
  where state in ('failed', 'cancelled') and graph is not null;
create index workflow_ended on sluice.workflow_run (state, finished_at)
  where finished_at is not null and parent is null;
create index workflow_maps on sluice.workflow_run (id)
  where parent is not null and finished_at is null and not stopping;
create index workflow_maps_ended on sluice.workflow_run (id) where parent is not null and finished_at is not null;
create index workflow_inner_maps on sluice.workflow_run (outer_run, id)
  where outer_run is not null and (finished_at is null or stopping);
create unique index workflow_parent on sluice.workflow_run (parent, name) where parent is not null;

-- Has a row while a run may be live. Steps and settles check here whether there are runs at all, and not in
-- workflow_run: while a snapshot is held open, a search for a live run walks over all that have ended since. Without
-- a key, so that starts in two open transactions do not wait for each other; then it has a few rows.
create table sluice.workflow_active (
  since timestamptz not null default sluice.clock()
);
alter table sluice.workflow_active replica identity full;

-- When the last search for a live run was. Written by one transaction at a time, see workflow_deactivate.
create table sluice.workflow_looked (
  at timestamptz not null
);
alter table sluice.workflow_looked replica identity full;

-- Nodes of runs. blocked: how many dependencies have not ended. failing: the rest of its items is being cancelled.
-- lane: of its window. task: of a node of one task. outcome: of a node that has no task, or could not create one.
create table sluice.workflow_node (
  run bigint not null, node smallint not null, kind sluice.node_kind not null, policy sluice.node_policy not null,
  state sluice.state not null, blocked smallint not null, failing boolean not null default false,
  total int not null default 0, succeeded int not null default 0, failed int not null default 0,
  cancelled int not null default 0, window_size int, lane bigint, task bigint, stream int, outcome json,
  started_at timestamptz, finished_at timestamptz,
  primary key (run, node)
) with (fillfactor = 50);
create unique index workflow_window on sluice.workflow_node (lane) where lane is not null;

-- The run and node that a task belongs to. item: from 0, in the order of the list.
create table sluice.workflow_task (
  id bigint primary key, run bigint not null, node smallint not null, item int not null
);
create unique index workflow_item on sluice.workflow_task (run, node, item);

-- Timers: when a sleep ends, or a wait for an event times out.
create table sluice.workflow_timer (
  run bigint not null, node smallint not null, due_at timestamptz not null, primary key (run, node)
);
create index workflow_timer_next on sluice.workflow_timer (due_at);

-- Events that no node has taken yet. Each is taken by one node: the first by the first that waits for its name.
create table sluice.workflow_event (
  n bigint generated always as identity primary key, run bigint not null, name text not null, payload json not null,
  created_at timestamptz not null default sluice.clock()
);
create index workflow_event_run on sluice.workflow_event (run, name, n);

-- Append-only notes of what happened inside users' transactions, which must not hold a run's lock: a task of a run
-- ended (id), or an event came for a run (id null). run: always the run that the note is about, so that notes of a
-- run that another transaction has locked are skipped by index, however many they are.
create table sluice.workflow_note (
  n bigint generated always as identity, id bigint, run bigint not null
);
create index workflow_note_next on sluice.workflow_note (n);
create index workflow_note_run on sluice.workflow_note (run, n);
create index workflow_note_id on sluice.workflow_note (id) where id is not null;
alter table sluice.workflow_note replica identity full;

-- Nodes whose tasks are to be created by a transaction of its own, because only code can tell their keys (in_code) or
-- because they are many. A row is kept until that is done, and locked meanwhile. One that is no longer wanted may stay
-- while it is locked; the next transaction that takes it deletes it. tries: how often it failed for a reason that may
-- pass. due_at: not before, -infinity if it was never tried. died: workers whose process died while it ran the user's
-- code for this node.
create table sluice.workflow_unplaced (
  run bigint not null, node smallint not null, stream int not null, in_code boolean not null,
  tries smallint not null default 0, due_at timestamptz not null default '-infinity',
  died bigint[] not null default '{}',
  primary key (run, node)
);
create index workflow_unplaced_next on sluice.workflow_unplaced (stream, due_at, run, node) where in_code;
create index workflow_unplaced_died on sluice.workflow_unplaced (run) where died <> '{}';
create index workflow_unplaced_long on sluice.workflow_unplaced (due_at, run, node) where not in_code;

-- Nodes for which a process runs the user's code now, a row per batch. It is committed before, on another connection,
-- and deleted by the transaction that places the nodes, which holds their rows of workflow_unplaced. So if another
-- transaction can lock a node of a row, its process has died. Taken with SKIP LOCKED, after the rows of
-- workflow_unplaced.
create table sluice.workflow_trying (
  id bigint generated always as identity primary key, worker bigint, runs bigint[] not null, nodes smallint[] not null,
  begun_at timestamptz not null default sluice.clock()
);

-- Nodes whose tasks are being cancelled. item: the last item done; null: all. pending: tasks that could not be
-- cancelled, because they run or another transaction had them locked. They are asked again until they have ended: a
-- task that was asked to stop while it ran, and was handed back at that moment, would wait at a shut window for ever.
create table sluice.workflow_halt (
  run bigint not null, node smallint not null, item int default -1, pending bigint[] not null default '{}',
  reason text, primary key (run, node)
);

-- Nodes that run again. item: the last item whose task was brought back; null: all. failed, cancelled: how many are not
-- back yet, by how they had ended. Until they are, the node counts them as not ended, and cannot end. If it is to end
-- without them, because it is cancelled or given up, they stay what they were. pending: tasks that could not be brought
-- back, because their fan-outs are being cancelled. outcome: of the node, before.
create table sluice.workflow_again (
  run bigint not null, node smallint not null, item int default -1, pending bigint[] not null default '{}',
  failed int not null, cancelled int not null, outcome json, primary key (run, node)
);

-- Append-only notes: the task that made this run failed or was cancelled. Also written in users' transactions.
create table sluice.workflow_orphan (
  run bigint not null
);
create index workflow_orphan_next on sluice.workflow_orphan (run);
alter table sluice.workflow_orphan replica identity full;

-- Runs that were paused or resumed, and that the fan-outs of their tasks have not followed yet. root: the run that was
-- paused. Written and read under the barrier.
create table sluice.workflow_lead (
  run bigint primary key, root bigint not null
);
create index workflow_lead_root on sluice.workflow_lead (root, run);

do $$
declare name text;
begin
  foreach name in array array[
    'workflow_run', 'workflow_node', 'workflow_timer', 'workflow_note', 'workflow_unplaced', 'workflow_halt',
    'workflow_again', 'workflow_orphan'] loop
    execute format('alter table sluice.%I set (
      autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
      autovacuum_vacuum_insert_scale_factor = 0.2)', name);
  end loop;
end $$;

-- The terms on which tasks of streams are created: workflow_terms of each, in lists.
create type sluice.workflow_made as (stream int, rank smallint, attempts smallint, gate int);

-- Idle slots. A task that needs several things could wait for the last of them while it keeps the first from others, or
-- be overtaken for ever by tasks that need only one of them. The keeper prevents both, at most twice a second, one
-- worker at a time; none of this costs a claim anything unless there is such a task.

-- Slots kept for tasks that need several at once: for span_ms from `since` on, then not for as long, so that slots do
-- not lie idle for long when one of the totals stays full; then for twice as long. gates: the totals of the task.
create table sluice.kept (
  id bigint primary key, gates int[] not null, since timestamptz not null, span_ms int not null
);

-- When turns were given out: one row, which is created here and never deleted. (An insert that finds it updated by an
-- open transaction would wait for that, even with ON CONFLICT DO NOTHING: a keeper that holds lanes could deadlock.)
-- The keeper moves it on twice a second, and only the transaction that holds its lock does what follows.
create table sluice.pulse (
  one boolean primary key default true check (one), at timestamptz not null default '-infinity',
  turn bigint not null default 0, before bigint not null default 0
);
insert into sluice.pulse default values;

-- A task that holds slots of keys and does not run. source: its table (gated, ready or waiting).
-- waits_at: the full key that it needs, 0 for none.
create type sluice.holder as (
  source text, tid tid, id bigint, stream int, gate int, rank smallint, attempt smallint, lanes bigint[],
  waits_at bigint, turn bigint);
