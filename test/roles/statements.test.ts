import { afterAll, beforeAll, expect, test } from "vitest";
import { allStatements, type AnyStatement } from "../../src/postgres/statement.js";
import { filesBelow } from "../tidy/source.js";
import { openRealm, roles, type Realm, type Role } from "./realm.js";

// Roles do not cover the statements that the test kit sends to its own databases.
const testKit = ["src/postgres/rehearse.ts", "src/postgres/template.ts"];
// A vacuum cannot be prepared and explained: the server checks the right when it runs.
const isVacuum = ({ text }: AnyStatement): boolean => text.startsWith("vacuum ");
for (const file of filesBelow("src/postgres", ".ts").filter((path) => !testKit.includes(path)))
  await import(/* @vite-ignore */ new URL(`../../${file}`, import.meta.url).href);

// The roles that may run each statement. The owner may run them all, and a worker may run those of a producer.
const all: readonly Role[] = ["producer", "worker", "reader"];
const producers: readonly Role[] = ["producer", "worker"];
const workers: readonly Role[] = ["worker"];
const readers: readonly Role[] = ["reader"];
const nobody: readonly Role[] = [];
const senders: Record<string, readonly Role[]> = {
  isolation: all,
  encoding: all,
  statement_timeout: all,
  // The server shows the connections to every role, and lets a role end only its own.
  backend: all,
  end_backend: all,
  clock: all,
  // Declaring a limit needs to read which there are.
  known_limits: all,
  task_state: all,
  task_attempts: all,
  task_input: readers,
  recorded: all,
  task_fates: all,
  explain: all,
  workflow_run: all,
  workflow_runs: all,
  workflow_nodes: all,
  workflow_newest: all,
  workflows: all,
  workflow_items: all,
  workflow_maps: all,

  declare_limit: producers,
  declare_contract: producers,
  declare_use: producers,
  fill_limit: producers,
  enqueue_many: producers,
  cancel: producers,
  await: producers,
  workflow_declare: producers,
  workflow_start: producers,
  workflow_send: producers,
  workflow_cancel: producers,
  workflow_continue: producers,
  workflow_cancel_maps: producers,
  workflow_result: producers,
  workflow_failures: producers,
  workflow_roots: producers,
  workflow_lock_unplaced: producers,
  workflow_inputs: producers,
  workflow_place: producers,
  workflow_placed: producers,
  workflow_misplaced: producers,

  register: workers,
  go_on_call: workers,
  connections: workers,
  beat: workers,
  retire: workers,
  survived: workers,
  step: workers,
  report_progress: workers,
  settle: workers,
  settle_in_transaction: workers,
  release_unknown: workers,
  claim_suspect: workers,
  release_suspect: workers,
  due: workers,
  reap: workers,
  keeper_poll: workers,
  keep_leave: workers,
  keep_lanes: workers,
  prune_done: workers,
  prune_expired: workers,
  limit_slots: workers,
  limit_count: workers,
  forget_limits: workers,
  limit_names: workers,
  workflow_take: workers,
  workflow_put_off: workers,
  workflow_try: workers,
  workflow_tried: workers,
  workflow_take_small: workers,
  workflow_place_small: workers,
  workflow_place_many: workers,
  workflow_map: workers,
  workflow_map_find: workers,
  workflow_map_mark: workers,
  workflow_keep: workers,
  workflow_orphans: workers,
  workflow_follow: workers,
  workflow_prune: workers,
  workflow_prune_graphs: workers,
  set_schedule: workers,
  due_schedules: workers,
  fire_schedule: workers,
  known_schedules: ["worker", "reader"],
  list_schedules: ["worker", "reader"],
  look_at_schedule: ["worker", "reader"],

  // A role sees only tables that it owns.
  walked_rows: all,

  counts: readers,
  explain_queue: readers,
  limits: readers,
  limit_holders: readers,
  list_queues: readers,
  list_workers: readers,
  known_queues: readers,
  workflow_graph: readers,

  set_limit: nobody,
  remove_limit: nobody,
  shed: nobody,
  pause_queue: nobody,
  retry: nobody,
  unblock: nobody,
  workflow_retry: nobody,
  workflow_pause: nobody,
  workflow_window: nobody,
  pause_schedule: nobody,
  resume_schedule: nobody,
  remove_schedule: nobody,
  trigger_schedule: nobody,
};
let realm: Realm;
beforeAll(async () => {
  realm = await openRealm("jobs");
});
afterAll(() => realm.close());

/** Whether the server would run it. EXPLAIN checks every right except those inside functions. */
async function may(role: Role, s: AnyStatement): Promise<boolean> {
  const nulls = s.params.map(() => "null").join(", ");
  await realm.sql(role, `prepare probe as ${s.text}`);
  try {
    await realm.sql(role, `explain execute probe${nulls === "" ? "" : `(${nulls})`}`);
    return true;
  } catch (e) {
    expect(e).toMatchObject({ code: "42501" });
    return false;
  } finally {
    await realm.sql(role, "deallocate probe");
  }
}

test("every statement of the library is assigned to roles", () => {
  const names = allStatements()
    .filter((s) => !isVacuum(s))
    .map((s) => s.name);
  expect(names.toSorted()).toEqual(Object.keys(senders).toSorted());
});

test.each(roles)("the role %s may run exactly the statements assigned to it", async (role) => {
  const allowed: string[] = [];
  for (const s of allStatements()) if (!isVacuum(s) && (await may(role, s))) allowed.push(s.name);
  const meant = Object.keys(senders).filter((n) => role === "owner" || senders[n]!.includes(role));
  expect(allowed.toSorted()).toEqual(meant.toSorted());
});
