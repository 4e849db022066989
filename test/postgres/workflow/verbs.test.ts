import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { issueClaim } from "../../../src/core/claim.js";
import { Database } from "../../../src/postgres/database.js";
import { Connection } from "../../../src/postgres/connection.js";
import {
  cancelRun,
  pauseRun,
  retryRun,
  sendEvent,
  setWindow,
  type RunCancelAnswer,
} from "../../../src/postgres/workflow/control.js";
import { declareWorkflow, INDEX, INPUT, ITEM } from "../../../src/postgres/workflow/declare.js";
import {
  inspectGraph,
  inspectNodes,
  inspectRun,
  listRuns,
  runResult,
  type NodeState,
  type NodeStatus,
  type RunSearch,
  type RunState,
  type RunStatus,
} from "../../../src/postgres/workflow/inspect.js";
import { listItems } from "../../../src/postgres/workflow/items.js";
import { cancelOrphans, keepRuns, pruneRuns, type RunsKept } from "../../../src/postgres/workflow/keep.js";
import { openMap, type MapCall } from "../../../src/postgres/workflow/map.js";
import {
  misplaced,
  placed,
  placeMany,
  placeTasks,
  putOff,
  renderInputs,
  takeUnplaced,
  type PlacedBatch,
  type Unplaced,
} from "../../../src/postgres/workflow/place.js";
import { placeSmallTasks, takeSmall, type SmallNode, type SmallTaken } from "../../../src/postgres/workflow/small.js";
import { lockUnplaced, unplacedOf } from "../../../src/postgres/workflow/unplaced.js";
import { startRuns, type RunsStarted, type RunStarts } from "../../../src/postgres/workflow/start.js";
import { freshDatabase, type TestDatabase } from "../../support/database.js";

let database: TestDatabase;
let db: Database;
let line: Connection;
let client: pg.Client;
let stream: number;

beforeAll(async () => {
  database = await freshDatabase({ migrated: true });
  db = new Database({ url: database.url });
  line = new Connection(db, 10_000);
  client = new pg.Client(database.url);
  await client.connect();
  const text = "select sluice.declare_contract('t', 'default', 0, 25, false, null, false, $1, null)";
  stream = ((await client.query({ text, values: [null], rowMode: "array" })).rows as number[][])[0]![0]!;
});

afterAll(async () => {
  await line.close();
  await db.close();
  await client.end();
  await database.drop();
});

const graph = { version: 1, name: "nightly" };

/** A fan-out over a list in the input, which waits for an event at its end. */
async function start(list: unknown, over: Partial<RunStarts> = {}): Promise<RunsStarted> {
  const number = await declareWorkflow(db, {
    name: "nightly",
    digest: "1",
    graph,
    steps: [
      {
        name: "sync",
        kind: "each",
        after: [],
        type: "t",
        queue: "default",
        items: { parts: ["", ""], nodes: [INPUT], paths: [["list"]] },
        input: { parts: ['{"a":', ',"i":', "}"], nodes: [ITEM, INDEX], paths: [[], []] },
        window: 2,
        onError: "collect",
      },
      { name: "ok", kind: "waitFor", after: [{ node: 1, on: "success" }], event: "go" },
    ],
    result: { parts: ["", ""], nodes: [2], paths: [[]] },
  });
  const inputs = [JSON.stringify({ list })];
  return startRuns(db, {
    graph: number,
    inputs,
    idempotency: null,
    idempotencyMs: 3_600_000,
    inputBytesMax: 100_000,
    ...over,
  });
}

async function inTransaction<T>(work: () => Promise<T>): Promise<T> {
  await client.query("begin");
  const result = await work();
  await client.query("commit");
  return result;
}

const batch = (inputs: string[]): PlacedBatch => ({
  from: 0,
  stream,
  priority: 0,
  attempts: 3,
  inputs,
  limits: [],
  keys: null,
  orders: inputs.map((_, i) => `k${i}`),
  orderBlocks: false,
});

/** Places the tasks of the next node as a process does that knows the type. */
async function place(): Promise<Unplaced> {
  return inTransaction(async () => {
    const taken = (await takeUnplaced(db, [stream], client)) as Unplaced;
    const text = await renderInputs(db, taken, { from: 0, max: taken.total }, client);
    const inputs = (JSON.parse(text) as unknown[]).map((x) => JSON.stringify(x));
    await placeTasks(db, taken, batch(inputs), client);
    expect(await placed(db, taken, client)).toBe(true);
    return taken;
  });
}

const cancelTasks = (): Promise<unknown> =>
  client.query("select * from sluice.cancel(array(select id from sluice.task))");
const states = async (run: string): Promise<NodeState[]> =>
  (await inspectNodes(db, run)).map((n: NodeStatus) => n.state);

test("a run passes all its states through the statements", async () => {
  const { ids, existed } = await start(["x", "y", "z"]);
  const run = ids[0]!;
  expect(existed).toBeNull();
  expect(await states(run)).toEqual(["placing", "pending"]);
  expect(await place()).toMatchObject({
    run,
    node: 1,
    stream,
    total: 3,
    priority: null,
    attempts: null,
  });
  expect(await takeUnplaced(db, [stream], client)).toBeNull();
  expect(await setWindow(db, run, "sync", 5)).toBe(true);
  expect(await pauseRun(db, run, true)).toBe(true);
  expect((await inspectRun(db, run))?.state).toBe("paused" satisfies RunState);
  expect(await pauseRun(db, run, false)).toBe(true);
  expect(await listItems(db, run, "sync", { after: 0, max: 1 })).toMatchObject({
    items: [{ index: 1, state: "waiting", error: null }],
    next: 1,
  });
  await cancelTasks();
  const kept: RunsKept = await keepRuns(line, 100);
  expect(kept).toEqual({ moved: 3, nextMs: null, unplaced: false, after: "0" });
  expect(await inspectNodes(db, run)).toMatchObject([
    {
      name: "sync",
      kind: "each",
      type: "t",
      state: "succeeded",
      total: 3,
      cancelled: 3,
      window: 5,
    },
    { name: "ok", kind: "waitFor", state: "running", task: null },
  ]);
  expect(await sendEvent(db, { run, name: "go", payload: '{"by":1}' })).toBe(true);
  await keepRuns(line, 100);
  const status: RunStatus | null = await inspectRun(db, run);
  expect(status).toMatchObject({
    id: run,
    name: "nightly",
    state: "succeeded",
    open: 0,
    parent: null,
  });
  expect(await runResult(db, run, 1_000)).toBe('{"by":1}');
  expect(await inspectGraph(db, run)).toEqual(graph);
  expect(await retryRun(db, run)).toBe(0);
  const answer: RunCancelAnswer = await cancelRun(db, run, "late");
  expect(answer).toBe("over");
});

test("an idempotency key finds the run again", async () => {
  const first = await start([], { idempotency: ["k"] });
  const second = await start([], { idempotency: ["k"] });
  expect(second).toEqual({ ids: first.ids, existed: [true] });
  expect(await cancelRun(db, first.ids[0]!, "enough")).toBe("cancelled");
  expect((await inspectRun(db, first.ids[0]!))?.outcome).toEqual({ reason: "enough" });
});

test("invalid inputs fail their node", async () => {
  const { ids } = await start(["x"]);
  const node = { run: ids[0]!, node: 1 };
  expect(await misplaced(db, node, '{"code":"input_invalid"}')).toBe(true);
  expect(await states(ids[0]!)).toEqual(["failed", "skipped"]);
  expect(await retryRun(db, ids[0]!)).toBe(1);
  expect(await states(ids[0]!)).toEqual(["placing", "pending"]);
  await cancelRun(db, ids[0]!, null);
});

test("a node that cannot be placed now is postponed, unless another session has locked it", async () => {
  const { ids } = await start(["x"]);
  const node = { run: ids[0]!, node: 1 };
  expect(await unplacedOf(db, ids[0]!)).toMatchObject([{ ...node, stream, total: 1 }]);
  await inTransaction(async () => {
    expect(await lockUnplaced(db, node, true, client)).toBe(true);
    expect(await putOff(db, node, { code: "XX000", message: "no luck" })).toBe(false);
  });
  expect(await putOff(db, node, { code: "XX000", message: "no luck" })).toBe(true);
  await cancelRun(db, ids[0]!, null);
  expect(await lockUnplaced(db, node, true, client)).toBe(false);
});

test("runs are listed newest first, by name, state and time, page by page", async () => {
  const { ids } = await start([1]);
  const search = async (s: Partial<RunSearch>): Promise<string[]> =>
    (await listRuns(db, { max: 100, ...s })).map((r) => r.id);
  const all = await search({});
  expect(all[0]).toBe(ids[0]);
  expect(all).toEqual(all.toSorted((a, b) => Number(b) - Number(a)));
  expect(await search({ name: "nightly" })).toEqual(all);
  expect(await search({ name: "other" })).toEqual([]);
  expect(await search({ state: "running" })).toEqual([ids[0]]);
  expect(await search({ max: 1, before: all[0] })).toEqual([all[1]]);
  expect(await search({ since: new Date(Date.now() + 3_600_000) })).toEqual([]);
  expect(await search({ since: new Date(Date.now() - 3_600_000) })).toEqual(all);
  await cancelRun(db, ids[0]!, null);
});

test("a map is created once, and ends with its task", async () => {
  const { rows } = await client.query<{ worker: string }>(
    "select sluice.register('w', array[$1::int], 60000, 10)::text as worker",
    [stream],
  );
  const { worker } = rows[0]!;
  await client.query("select sluice.enqueue_many($1, 0, 1, '1')", [stream]);
  const claimed = await client.query<{ id: string }>(
    "select id::text as id from sluice.step($1, 160, array[$2::int], 1)",
    [worker, stream],
  );
  const claim = issueClaim(claimed.rows[0]!.id, "160");
  const call: MapCall = {
    worker,
    claim,
    name: "pages",
    stream,
    total: 2,
    window: 1,
    onError: "finish",
  };
  const made = await inTransaction(async () => {
    const opened = await openMap(db, call, client);
    await placeTasks(db, { run: opened.run, node: 1 }, batch(["1", "2"]), client);
    await placed(db, { run: opened.run, node: 1 }, client);
    return opened;
  });
  expect(made.fresh).toBe(true);
  expect(await openMap(db, call, client)).toEqual({ run: made.run, fresh: false });
  expect(await inspectRun(db, made.run)).toMatchObject({ name: "pages", parent: claim.id });
  await client.query("select sluice.settle($1, array[$2::bigint], array[160::bigint], '{fail}', '{0}', null)", [
    worker,
    claim.id,
  ]);
  expect((await cancelOrphans(line, 10)).cancelled).toBe(1);
  expect((await inspectRun(db, made.run))?.state).toBe("cancelled");
});

test("nodes of one task each are placed together", async () => {
  const graphs = await declareWorkflow(db, {
    name: "small",
    digest: "1",
    graph,
    steps: [
      {
        name: "one",
        kind: "task",
        after: [],
        type: "t",
        queue: "default",
        attempts: 7,
        input: { parts: ["", ""], nodes: [INPUT], paths: [[]] },
      },
    ],
  });
  const starts = { graph: graphs, idempotency: null, idempotencyMs: 1_000, inputBytesMax: 1_000 };
  const { ids } = await startRuns(db, { ...starts, inputs: ["1", "2"] });
  await inTransaction(async () => {
    const taken: SmallTaken = await takeSmall(db, [stream], { max: 10, bytes: 1_000 }, client);
    const nodes: SmallNode[] = taken.nodes;
    const common = { node: 1, stream, priority: null, attempts: 7 };
    expect(taken).toEqual({
      nodes: ids.map((run, i) => ({ ...common, run, input: String(i + 1) })),
      others: false,
    });
    await placeSmallTasks(db, nodes, ids, batch(["1", "2"]), client);
  });
  expect([await states(ids[0]!), await states(ids[1]!)]).toEqual([["running"], ["running"]]);
  for (const run of ids) await cancelRun(db, run, null);
});

test("ended runs are pruned, and nothing is left to place", async () => {
  expect(await placeMany(line)).toBe(false);
  const older = { succeededMs: 0, failedMs: 0, cancelledMs: 0 };
  for (let i = 0; i < 20 && (await pruneRuns(line, older, 100)).pruned > 0; i++);
  expect(await listRuns(db, { max: 10 })).toEqual([]);
});
