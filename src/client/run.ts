import { SluiceError } from "../core/error.js";
import { checkName } from "../core/name.js";
import { checkInteger } from "../core/number.js";
import { checkOptions } from "../core/option.js";
import { reasonText } from "../core/outcome.js";
import type { Queryable } from "../core/ports.js";
import { quote } from "../core/quote.js";
import { type } from "../core/schema.js";
import type { RunCancelAnswer } from "../postgres/workflow/control.js";
import type { RunStatus as RunRow } from "../postgres/workflow/inspect.js";
import type { NodeFailure } from "../postgres/workflow/failures.js";
import type { Graph } from "../workflow/graph.js";
import { encodeRunInput } from "../workflow/input.js";
import type { Workflow } from "../workflow/workflow.js";
import type { Patience } from "./over.js";
import type { RunStatus } from "./run-status.js";
import { checkTx } from "./tx.js";

/** What a handle on a run can ask. */
export interface RunDesk {
  readonly payloadBytesMax: number;
  status(id: string): Promise<RunStatus | null>;
  watch(id: string, signal: AbortSignal | null): AsyncGenerator<RunStatus, void, undefined>;
  graph(id: string): Promise<Graph | null>;
  /** Resolves when the run is over. */
  over(id: string, patience: Patience): Promise<RunRow>;
  /** JSON text. */
  result(id: string): Promise<string>;
  failures(id: string): Promise<NodeFailure[]>;
  cancel(id: string, reason: string | null): Promise<RunCancelAnswer>;
  retry(id: string): Promise<number>;
  pause(id: string, paused: boolean): Promise<boolean>;
  window(id: string, node: string, window: number): Promise<boolean>;
  /** payload: JSON text. */
  send(event: { run: string; name: string; payload: string }, tx?: Queryable): Promise<boolean>;
}

/** What is known of a run beforehand. */
interface RunFacts {
  readonly existed?: boolean;
  readonly workflow?: Pick<Workflow, "name" | "graph" | "events"> | undefined;
}

const TIMEOUT_RANGE = { min: 1, max: 2_147_483_647 };
const WINDOW_RANGE = { min: 1, max: 1_000_000 };

/** One run of a workflow. */
export class Run<Output = unknown> {
  readonly id: string;
  /** It was found under its idempotency key instead of started. */
  readonly existed: boolean;
  readonly #desk: RunDesk;
  readonly #workflow: RunFacts["workflow"];

  /** @internal */
  constructor(desk: RunDesk, id: string, { existed = false, workflow }: RunFacts = {}) {
    this.#desk = desk;
    this.id = id;
    this.existed = existed;
    this.#workflow = workflow;
  }

  /** The run and its nodes as they stand; null if it is not there. Costs the same however many items there are. */
  status(): Promise<RunStatus | null> {
    return this.#desk.status(this.id);
  }

  /** The graph that it was started with; null if it is not there. */
  graph(): Promise<Graph | null> {
    return this.#desk.graph(this.id);
  }

  /**
   * Waits for the end and returns the result. Throws `workflow_failed` or `workflow_cancelled` with the nodes
   * and their errors in `details`, `wait_timeout`, `run_not_found`, or the reason of the signal.
   */
  async result(
    options: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<Output> {
    checkOptions("result", options, ["timeoutMs", "signal"]);
    const { timeoutMs, signal } = options;
    const run = await this.#desk.over(this.id, {
      timeoutMs:
        timeoutMs === undefined ? null : checkInteger("timeoutMs", timeoutMs, TIMEOUT_RANGE),
      signal: checkSignal(signal),
    });
    if (run.state === "succeeded") return JSON.parse(await this.#desk.result(this.id)) as Output;
    const failures = await this.#desk.failures(this.id);
    throw run.state === "failed" ? failed(run, failures) : cancelled(run, failures);
  }

  /**
   * The status now and whenever it has changed, until the run is over: `for await (const status of run.watch())`.
   * Whoever is slow misses steps in between.
   */
  watch(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<RunStatus, void> {
    checkOptions("watch", options, ["signal"]);
    return this.#desk.watch(this.id, checkSignal(options.signal));
  }

  /** Cancels what is not over: what waits never begins, what runs hears of it (then the answer is `asked`). */
  async cancel(reason?: string): Promise<RunCancelAnswer> {
    return this.#desk.cancel(this.id, reason === undefined ? null : reasonText(reason));
  }

  /**
   * Runs again from the nodes that failed or were cancelled; of an each only those items. What succeeded is
   * kept. Returns how many nodes, 0 if none had failed. While a cancel is under way it throws `workflow_stopping`.
   */
  async retry(): Promise<number> {
    return this.#desk.retry(this.id);
  }

  /** No node begins any more and nothing passes a window; what runs may finish. False if it is over or not there. */
  async pause(): Promise<boolean> {
    return this.#desk.pause(this.id, true);
  }

  async resume(): Promise<boolean> {
    return this.#desk.pause(this.id, false);
  }

  /** Another window for an each that runs. Lowered, it lets those that run finish. False if there is none. */
  async window(node: string, window: number): Promise<boolean> {
    checkName("node", node);
    return this.#desk.window(this.id, node, checkInteger("window", window, WINDOW_RANGE));
  }

  /**
   * Sends an event, which a node that waits for it takes, now or later; each is taken by one. With `tx` it is
   * sent if and only if that commits. False if the run is over or not there.
   */
  async send(
    event: string,
    payload?: unknown,
    options: { readonly tx?: Queryable } = {},
  ): Promise<boolean> {
    checkOptions("send", options, ["tx"]);
    const tx = checkTx(options.tx);
    const schema = this.#schemaOf(checkName("event", event));
    const text = await encodeRunInput({ input: schema }, payload, this.#desk.payloadBytesMax);
    return this.#desk.send({ run: this.id, name: event, payload: text }, tx);
  }

  #schemaOf(event: string): Workflow["input"] {
    if (this.#workflow === undefined) return type<unknown>();
    const { name, graph, events } = this.#workflow;
    if (!graph.nodes.some((node) => node.kind === "waitFor" && node.event === event)) {
      throw new SluiceError(
        "unknown_event",
        `workflow ${name} waits for no event ${quote(event)}`,
        {
          details: { workflow: name, event },
        },
      );
    }
    return events.get(event) ?? type<unknown>();
  }
}

function checkSignal(signal: unknown): AbortSignal | null {
  if (signal === undefined) return null;
  if (signal instanceof AbortSignal) return signal;
  throw new SluiceError("invalid_option", `signal must be an AbortSignal, not ${quote(signal)}`, {
    details: { option: "signal" },
  });
}

function failed({ id, name }: RunRow, failures: readonly NodeFailure[]): SluiceError {
  const [first] = failures;
  const why = first === undefined ? "" : `: ${whyOf(first)}`;
  return new SluiceError("workflow_failed", `run ${id} of ${name} failed${why}`, {
    details: { id, workflow: name, nodes: failures },
  });
}

function cancelled(run: RunRow, failures: readonly NodeFailure[]): SluiceError {
  const { id, name, outcome } = run;
  const reason = (outcome as { reason?: string | null } | null)?.reason ?? null;
  return new SluiceError(
    "workflow_cancelled",
    `run ${id} of ${name} was cancelled${reason === null ? "" : `: ${reason}`}`,
    { details: { id, workflow: name, reason, nodes: failures } },
  );
}

function whyOf({ node, item, error }: NodeFailure): string {
  const { message, reason } = (error ?? {}) as { message?: string; reason?: string | null };
  const where = item === null ? quote(node) : `${quote(node)}, item ${item}`;
  return `node ${where}: ${message ?? reason ?? "no reason given"}`;
}
