-- Four roles: <schema>_owner, _producer, _worker and _reader. See roles.md for what each may do.
--
-- Run it as a superuser, or as whoever owns the database and may create roles, and again after every
-- migration: what a migration has made is the owner's alone until then. Running it again changes
-- nothing else. For another schema, or roles that do not begin with its name:
--   psql -c "set sluice.schema = 'jobs'" -c "set sluice.roles = 'acme_jobs'" -f roles.sql
--
-- Nobody but the owner has rights on the tables that hold tasks, slots and claims: a producer who could
-- insert a ready task would be past every limit, and one who could delete a running one would settle it.
-- The doors, which are the functions that clients and workers call, run as the owner instead (security
-- definer), with a search path that no caller can change. What a role may do is which doors it may enter.
--
-- The doors that declare are left to run as the caller, who has the right to add types and limits but
-- none to change a number: that is what keeps `sync` and `limits.set` the owner's.

do $roles$
declare
  v_schema text := coalesce(nullif(current_setting('sluice.schema', true), ''), 'sluice');
  v_prefix text := coalesce(nullif(current_setting('sluice.roles', true), ''), v_schema);
  v_owner text := v_prefix || '_owner';
  v_producer text := v_prefix || '_producer';
  v_worker text := v_prefix || '_worker';
  v_reader text := v_prefix || '_reader';
  v_others text := format('%I, %I, %I', v_producer, v_worker, v_reader);

  producer_doors text[] := '{enqueue, enqueue_many, cancel, explain, fill_limit, task_by_id, task_attempts, last_error, task_progress, make_gate, gate_of, declare_stream, declare_use, workflow_declare, workflow_start, workflow_send, workflow_cancel, workflow_continue, workflow_cancel_maps, workflow_result,
    workflow_failures, workflow_item_page, workflow_list, workflow_roots, workflow_lock_unplaced, workflow_inputs, workflow_place, workflow_placed, workflow_misplaced}';
  worker_doors text[] := '{register, is_on_call, go_on_call, connections, beat, retire, survived, step, settle,
    settle_in_transaction, release_unknown, report_progress, claim_suspect, release_suspect, reap, due, keeper_poll, keep_leave,
    keep_lanes, prune_done, prune_expired, forget_limits, give_stream_gate, limit_count, limit_slots, limit_names,
    set_schedule, due_schedules, fire_schedule, workflow_take, workflow_try, workflow_tried, workflow_put_off, workflow_take_small, workflow_place_small,
    workflow_place_many, workflow_map, workflow_map_find, workflow_map_mark, workflow_keep, workflow_orphans, workflow_follow, workflow_prune, workflow_prune_graphs}';
  reader_doors text[] := '{explain_queue}';
  -- Run as whoever calls them, with the rights on tables given below.
  declaring text[] := '{declare_limit, declare_contract, barrier_exclusive, refuse}';
  looking text[] := '{clock, own_turn, turn_bits, lane_level, order_level, window_level, no_limit, window_limit,
    lane_place, lane_cap, cap_of, gates_of, violations, slot_violations, task_violations, node_violations,
    run_violations, explain, task_by_id, task_attempts, last_error, task_progress, workflow_item_page,
    workflow_list}';

  v_name text;
  v record;
begin
  foreach v_name in array array[v_owner, v_producer, v_worker, v_reader] loop
    if not exists (select from pg_roles where rolname = v_name) then execute format('create role %I nologin', v_name); end if;
  end loop;
  -- Who works also enqueues.
  if not pg_has_role(v_worker, v_producer, 'member') then execute format('grant %I to %I', v_producer, v_worker); end if;
  -- The owner makes the schema, if it is not there yet, with the first migration.
  if not has_database_privilege(v_owner, current_database(), 'create') then
    execute format('grant create on database %I to %I', current_database(), v_owner); end if;
  if to_regnamespace(quote_ident(v_schema)) is null then
    raise notice 'schema % does not exist yet: migrate as %, then run this again', v_schema, v_owner;
    return;
  end if;

  -- Everything in the schema is the owner's, whoever ran the migrations: the doors must not run as a superuser.
  for v in
    select format('schema %I', nspname) as what from pg_namespace where nspname = v_schema and nspowner <> v_owner::regrole
    union all select format('%s %s', case relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end, c.oid::regclass)
      from pg_class c where relnamespace = v_schema::regnamespace and relowner <> v_owner::regrole and relkind in ('r', 'v', 'S')
        -- The sequence of an identity column goes with its table.
        and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'i')
    union all select format('type %s', t.oid::regtype) from pg_type t left join pg_class c on c.oid = t.typrelid
      where typnamespace = v_schema::regnamespace and typowner <> v_owner::regrole and (relkind = 'c' or typtype = 'e')
    union all select format('function %s', oid::regprocedure) from pg_proc
      where pronamespace = v_schema::regnamespace and proowner <> v_owner::regrole
  loop execute format('alter %s owner to %I', v.what, v_owner); end loop;

  -- From nothing, so that a right which is not given below is not there either.
  execute format('revoke all on schema %I from public, %s', v_schema, v_others);
  execute format('revoke all on all tables in schema %I from public, %s', v_schema, v_others);
  execute format('revoke all on all sequences in schema %I from public, %s', v_schema, v_others);
  execute format('revoke all on all functions in schema %I from public', v_schema);
  -- A function that this release no longer has keeps its rights: processes of the release before still call it.
  for v in execute format(
    'select p.oid::regprocedure as door from pg_proc p where pronamespace = %L::regnamespace
      and not exists (select from %I.installed i where i.name = p.proname and i.gone_since is not null)', quote_ident(v_schema), v_schema)
  loop execute format('revoke all on function %s from %s', v.door, v_others); end loop;
  execute format('grant usage on schema %I to %s', v_schema, v_others);

  for v in
    select p.oid::regprocedure as door, p.proname = any (producer_doors || declaring) as produces, p.proname = any (looking) as looks, p.proname = any (reader_doors) as reads,
      p.proname = any (producer_doors || worker_doors || reader_doors) as guarded, p.prosecdef as definer
    from pg_proc p where pronamespace = v_schema::regnamespace and proname = any (producer_doors || worker_doors || reader_doors || declaring || looking)
  loop
    if v.guarded then execute format('alter function %s security definer set search_path = pg_catalog, pg_temp', v.door);
    elsif v.definer then execute format('alter function %s security invoker reset search_path', v.door); end if;
    execute format('grant execute on function %s to %s', v.door,
      case when v.looks then v_others when v.reads then quote_ident(v_reader) when v.produces then quote_ident(v_producer) else quote_ident(v_worker) end);
  end loop;

  -- What the library asks when it connects.
  execute format('grant select on %1$I.migration, %1$I.compatibility, %1$I.installed to %2$s', v_schema, v_others);

  -- Declaring: types and limits may be added. Of a type all may be changed but its own limit, of a limit nothing. What
  -- follows from them (queues, streams, counters) is made by doors.
  execute format('grant select on %1$I.limits, %1$I.contract, %1$I.stream, %1$I.gate to %2$I', v_schema, v_producer);
  execute format('grant insert (name, total_declared, per_key_declared, transient), update (unused_since)
    on %1$I.limits to %2$I', v_schema, v_producer);
  execute format('grant insert (type, queue, priority, attempts_max, ordered, order_scope, order_blocks, limit_ids),
    update (queue, priority, attempts_max, ordered, order_scope, order_blocks, limit_ids) on %1$I.contract to %2$I', v_schema, v_producer);

  -- Waiting for a result: look at a task by its id, and say that somebody waits.
  execute format('grant select on %1$I.workflow_status, %1$I.workflow_progress, %1$I.workflow_graph to %2$I', v_schema, v_producer);
  execute format('grant insert (id, until), select (id) on %1$I.awaited to %2$I', v_schema, v_producer);

  -- A worker's code sets its schedules, and looks at them for that.
  execute format('grant select on %1$I.schedule_status to %2$I', v_schema, v_worker);

  -- A reader sees everything but the secret that lanes are hashed with: who knows it can choose keys that collide.
  execute format('grant select on all tables in schema %1$I to %2$I', v_schema, v_reader);
  execute format('revoke select on %1$I.setting from %2$I', v_schema, v_reader);
end $roles$;
