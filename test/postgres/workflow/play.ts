import type { CompiledEdge, CompiledStep, CompiledTemplate } from "../../../src/postgres/workflow/declare.js";
import { Scene, type Held, type Session, type TestWorker, type TypeTerms } from "../../support/sql.js";

/** What a task comes to: its result as a value, or how else it ends. */
export type Ending = { readonly result: unknown } | { readonly fail: string } | "cancel" | "retry" | "keep";

export interface InHand extends Held {
  readonly type: string;
  readonly input: unknown;
}

/** Where a task belongs, and how it stands. */
export interface Member {
  readonly id: number;
  readonly node: string;
  readonly item: number;
  readonly state: string;
}

const RECORD = "\u001e";
const ROUNDS_MAX = 2_000;
let digests = 0;

/** A reference or a literal in a template, by the names of nodes. */
export class Ref {
  constructor(
    readonly root: string,
    readonly path: readonly string[],
  ) {}
}

/** A result as the text that a worker would write of it. */
export class JsonText {
  constructor(readonly text: string) {}
}

export const ref = (root: string, ...path: string[]): Ref => new Ref(root, path);

interface Node extends Omit<CompiledStep, "name" | "kind" | "after" | "input" | "items" | "ref" | "until"> {
  readonly after?: readonly (string | (Omit<CompiledEdge, "node"> & { readonly node: string }))[];
  readonly input?: unknown;
  readonly items?: unknown;
  readonly ref?: unknown;
  readonly until?: unknown;
}

/** name: kind, and the rest. */
export type Nodes = Record<string, [CompiledStep["kind"], Node]>;

function textOf(result: unknown): string {
  if (result instanceof JsonText) return result.text;
  return result === undefined ? "" : JSON.stringify(result);
}

/** Compiles a graph that a test has written down, as a definition would. */
export function compile(nodes: Nodes): CompiledStep[] {
  const names = Object.keys(nodes);
  const numberOf = (name: string): number =>
    ["input", "item", "index"].includes(name) ? -["input", "item", "index"].indexOf(name) : names.indexOf(name) + 1;
  const template = (value: unknown): CompiledTemplate => {
    const refs: Ref[] = [];
    const text = JSON.stringify(value, (_, x: unknown) => (x instanceof Ref ? `\u0001${refs.push(x)}` : x));
    return {
      parts: text.split(/"\\u0001\d+"/),
      nodes: refs.map((r) => numberOf(r.root)),
      paths: refs.map((r) => r.path),
    };
  };
  return Object.entries(nodes).map(([name, [kind, node]]) => {
    const { after = [], input, items, ref: looked, until, ...rest } = node;
    return {
      ...rest,
      name,
      kind,
      after: after.map((edge) =>
        typeof edge === "string"
          ? { node: numberOf(edge), on: "success" as const }
          : { ...edge, node: numberOf(edge.node) },
      ),
      ...(kind === "task" || kind === "each" ? { input: template(input ?? null) } : {}),
      ...(items === undefined ? {} : { items: template(items) }),
      ...(looked === undefined ? {} : { ref: template(looked) }),
      ...(until === undefined ? {} : { until: template(until) }),
    };
  });
}

/** Runs of workflows, driven by hand: claims and settles as workers do, through the same functions. */
export class Play {
  readonly scene: Scene;
  readonly db: Session;
  readonly #streams = new Map<number, string>();
  worker!: TestWorker;
  /** The peak of tasks in flight per type. */
  readonly peak = new Map<string, number>();
  /** Every task that was claimed, in order. */
  readonly started: InHand[] = [];
  hand: InHand[] = [];
  keep = true;

  private constructor(scene: Scene, db: Session) {
    this.scene = scene;
    this.db = db;
  }

  static async open(types: Record<string, TypeTerms>): Promise<Play> {
    return Play.on(await Scene.open(), types);
  }

  static async on(scene: Scene, types: Record<string, TypeTerms>): Promise<Play> {
    const [db] = await scene.sessions(1);
    const play = new Play(scene, db);
    for (const [type, terms] of Object.entries(types)) play.#streams.set(await db.type(type, terms), type);
    play.worker = await db.register([...play.#streams.keys()]);
    return play;
  }

  streamOf(type: string): number {
    for (const [stream, name] of this.#streams) if (name === type) return stream;
    throw new Error(`no type ${type}`);
  }

  declare(nodes: Nodes, result?: CompiledTemplate, name = "flow"): Promise<number> {
    return this.db.value("select sluice.workflow_declare($1, $2, '{}', $3, $4)", [
      name,
      String(++digests),
      JSON.stringify(compile(nodes)),
      result === undefined ? null : JSON.stringify(result),
    ]);
  }

  async start(graph: number, ...inputs: unknown[]): Promise<number[]> {
    const all = inputs.length === 0 ? [null] : inputs;
    const ids = await this.db.value<string>("select ids::text from sluice.workflow_start($1, $2)", [
      graph,
      all.map((x) => JSON.stringify(x)).join(RECORD),
    ]);
    return ids.slice(1, -1).split(",").map(Number);
  }

  async run(nodes: Nodes, input: unknown = null): Promise<number> {
    const [id] = await this.start(await this.declare(nodes), input);
    return id!;
  }

  /** Settles these as successes and claims n more. */
  async step(n: number, done: readonly [InHand, unknown][] = []): Promise<InHand[]> {
    const token = String(16 * (1_000_000 + this.started.length * 64 + Math.floor(performance.now() * 7)));
    const rows = await this.db.rows<{
      id: string | null;
      stream: number;
      attempt: number;
      input: unknown;
    }>("select id, stream, attempt, input from sluice.step($1, $2, $3, $4, $5, $6, $7, $8)", [
      this.worker.id,
      token,
      this.worker.streams,
      n,
      done.length === 0 ? null : done.map(([h]) => h.id),
      done.length === 0 ? null : done.map(([h]) => h.token),
      done.map(([, x]) => textOf(x)).join(RECORD) || null,
      this.keep,
    ]);
    const gone = new Set(done.map(([h]) => h.id));
    this.hand = this.hand.filter((h) => !gone.has(h.id));
    const claimed = rows
      .filter((r) => r.id !== null)
      .map((r) => ({
        id: Number(r.id),
        stream: r.stream,
        attempt: r.attempt,
        input: r.input,
        token,
        type: this.#streams.get(r.stream)!,
      }))
      .toSorted((a, b) => a.id - b.id);
    this.hand.push(...claimed);
    this.started.push(...claimed);
    for (const type of this.#streams.values()) {
      const now = this.hand.filter((h) => h.type === type).length;
      this.peak.set(type, Math.max(now, this.peak.get(type) ?? 0));
    }
    return claimed;
  }

  claim(n = 100): Promise<InHand[]> {
    return this.step(n);
  }

  async settle(task: InHand, ending: Ending): Promise<void> {
    if (ending === "keep") return;
    if (typeof ending === "object" && "result" in ending) {
      await this.step(0, [[task, ending.result]]);
      return;
    }
    const kind = typeof ending === "object" ? "fail" : ending === "cancel" ? "cancel" : "retry";
    await this.db.value("select sluice.settle($1, $2, $3, $4, $5, $6)::text", [
      this.worker.id,
      [task.id],
      [task.token],
      [kind],
      [0],
      JSON.stringify({ message: typeof ending === "object" ? ending.fail : ending }),
    ]);
    this.hand = this.hand.filter((h) => h.id !== task.id);
  }

  /** Claims and settles tasks as the callback says, and runs the keeper, until nothing changes. */
  async drain(of: (task: InHand) => Ending = () => ({ result: null })): Promise<void> {
    for (let round = 0; round < ROUNDS_MAX; round++) {
      const claimed = await this.claim();
      const before = this.hand.length;
      const { hand } = this;
      for (const task of hand) await this.settle(task, of(task));
      const kept = await this.keeper();
      if (claimed.length === 0 && this.hand.length === before && kept === 0) return;
    }
    throw new Error("it goes on for ever");
  }

  /** What a keeper does of its own accord. */
  async keeper(): Promise<number> {
    const due = await this.db.due();
    let moved = await this.db.value<number>("select moved from sluice.workflow_keep(1000)");
    while (await this.db.value<boolean>("select sluice.workflow_place_many()")) moved++;
    moved += await this.db.value<number>("select cancelled from sluice.workflow_orphans(100)");
    return due + moved + (await this.db.keep());
  }

  /** Each node with its state, and counts where it has more than one task. */
  async nodes(run: number): Promise<Record<string, string>> {
    const rows = await this.db.rows<{ name: string; state: string }>(
      "select name, state from sluice.workflow_progress where run = $1 order by node",
      [run],
    );
    return Object.fromEntries(rows.map((r) => [r.name, r.state]));
  }

  async counts(run: number, node: string): Promise<Record<string, number>> {
    const [row] = await this.db.rows<Record<string, number>>(
      "select total, succeeded, failed, cancelled from sluice.workflow_progress where run = $1 and name = $2",
      [run, node],
    );
    return row!;
  }

  state(run: number): Promise<string> {
    return this.db.value("select state from sluice.workflow_status where id = $1", [run]);
  }

  async result(run: number): Promise<unknown> {
    return JSON.parse(await this.db.value("select sluice.workflow_result($1, 1000000)", [run]));
  }

  errorOf(run: number, node: string): Promise<{ code: string; message: string } | null> {
    return this.db.value("select outcome from sluice.workflow_progress where run = $1 and name = $2", [run, node]);
  }

  async members(run: number): Promise<Member[]> {
    const rows = await this.db.rows<Member & { id: string }>(
      `select w.id, p.name as node, w.item, t.state from sluice.workflow_task w join sluice.workflow_progress p on p.run = w.run and p.node = w.node
        join sluice.task_state t on t.id = w.id where w.run = $1 order by w.node, w.item`,
      [run],
    );
    return rows.map((r) => ({ ...r, id: Number(r.id) }));
  }

  violations(): Promise<string[]> {
    return this.scene.violations();
  }

  close(): Promise<void> {
    return this.scene.close();
  }
}
