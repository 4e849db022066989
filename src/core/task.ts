import type { TaskContext } from "./context.js";
import { SluiceError } from "./error.js";
import type { LimitEntry } from "./limit.js";
import { checkName, type Key } from "./name.js";
import { checkInteger } from "./number.js";
import { checkFunction, checkOneOf, checkOptions } from "./option.js";
import type { HandlerOutcome } from "./outcome.js";
import { placeLimits, placeOrder, usesOf, type LimitRule, type OrderRule, type Placement } from "./place.js";
import { resolveRetry, type RetryPolicy } from "./retry.js";
import { isSchema, noInput, type, validateStored } from "./schema.js";
import type { InputOf, OutputOf, ReturnedOf, Schema } from "./schema.js";
import type { TaskTerms } from "./terms.js";

/** Reads the order key from an input; undefined or null leaves the task unordered. */
type OrderKeyOf<Parsed> = (input: Parsed) => Key | null | undefined;

/** An order key with its scope, and what a final failure does to the tasks behind it. */
export interface OrderOptions<Parsed> {
  readonly key: OrderKeyOf<Parsed>;
  /** Keys of different scopes are independent. Without a scope, a key is global. */
  readonly scope?: string;
  readonly onFailure?: "continue" | "block";
}

/** Options of a task type. */
export interface TaskOptions<In extends Schema, Out extends Schema> {
  /** The schema of the input; without one, the task takes no input. */
  readonly input?: In;
  /** The schema that gives `result()` its type. Results are not checked against it. */
  readonly output?: Out;
  /** The maximum number of tasks of this type that run at once, across all workers; 0 pauses. */
  readonly concurrency?: number;
  /** A list of limits, or a function of the parsed input that returns one. */
  readonly limits?:
    readonly LimitEntry<OutputOf<In>>[] | ((input: OutputOf<In>) => readonly LimitEntry<OutputOf<In>>[]);
  readonly order?: OrderKeyOf<OutputOf<In>> | OrderOptions<OutputOf<In>>;
  readonly retry?: Partial<RetryPolicy>;
  /** Default 300,000; null: no timeout. */
  readonly timeoutMs?: number | null;
  readonly queue?: string;
  /** -32,000 to 32,000, default 0. Higher runs first. */
  readonly priority?: number;
}

/** Executes a task. It returns a result, throws to fail, or throws or returns `cancel()`, `snooze()` or `fail()`. */
export type HandlerFunction<Parsed, Output> = (
  input: Parsed,
  ctx: TaskContext,
) => Output | HandlerOutcome | Promise<Output | HandlerOutcome>;

/** A contract together with the function that implements it. */
export interface TaskHandler<Input = unknown, Parsed = unknown, Output = unknown> {
  readonly contract: TaskContract<Input, Parsed, Output>;
  run(input: Parsed, ctx: TaskContext): Output | HandlerOutcome | Promise<Output | HandlerOutcome>;
}

/**
 * The declaration of a task, which producers can import without its handler. Returned is the type that a handler may
 * return: with `type<T>()` as the output also values that become the Output as JSON, such as a Date.
 */
export interface TaskContract<Input = unknown, Parsed = unknown, Output = unknown, Returned = Output> extends TaskTerms<
  Input,
  Parsed,
  Output
> {
  /** Binds the function that executes the task. */
  handle(fn: HandlerFunction<Parsed, Returned>): TaskHandler<Input, Parsed, Output>;
}

const OPTIONS = ["input", "output", "concurrency", "limits", "order", "retry", "timeoutMs", "queue", "priority"];
const CONCURRENCY_RANGE = { min: 0, max: 2_000_000_000 };
const TIMEOUT_MS = 300_000;
const TIMEOUT_RANGE = { min: 1, max: 2_147_483_647 };
const PRIORITY_RANGE = { min: -32_000, max: 32_000 };

// The internal view of a task: its types matter only to the code that declares and uses it.
type AnyOptions = TaskOptions<Schema, Schema>;

/** Declares a task type. */
export function task<
  In extends Schema<unknown, unknown> = Schema<undefined>,
  Out extends Schema<unknown, unknown> = Schema,
>(
  name: string,
  options: TaskOptions<In, Out> = {},
): TaskContract<InputOf<In>, OutputOf<In>, OutputOf<Out>, ReturnedOf<Out>> {
  checkOptions("task", options, OPTIONS);
  const terms = termsOf(checkName("task", name), options as unknown as AnyOptions);
  const contract: TaskContract = Object.freeze({
    ...terms,
    handle: (fn: HandlerFunction<unknown, unknown>) => Object.freeze({ contract, run: checkFunction("handler", fn) }),
  });
  return contract;
}

function termsOf(name: string, options: AnyOptions): TaskTerms {
  const { queue = "default", priority = 0, timeoutMs = TIMEOUT_MS } = options;
  const { attempts, backoff } = resolveRetry(options.retry);
  const input = checkSchema("input", options.input) ?? noInput;
  const order = orderRule(options.order);
  const concurrency = checkConcurrency(options.concurrency);
  const uses = limitUses(options.limits, name);
  return {
    type: name,
    queue: checkName("queue", queue),
    priority: checkInteger("priority", priority, PRIORITY_RANGE),
    attempts,
    backoff,
    timeoutMs: timeoutMs === null ? null : checkInteger("timeoutMs", timeoutMs, TIMEOUT_RANGE),
    concurrency,
    ordered: order !== null,
    orderBlocks: order?.blocks ?? false,
    orderScope: order?.scope ?? null,
    limitList: typeof uses === "function" ? null : uses,
    input,
    output: checkSchema("output", options.output) ?? type<unknown>(),
    parse: (stored) => validateStored(input, stored),
    place: placeWith(order, { task: name, uses, ownName: concurrency === null ? null : name }),
  };
}

function placeWith(order: OrderRule | null, rule: LimitRule): TaskTerms["place"] {
  const limitsOf = limitsWith(rule);
  if (order === null) return (input) => ({ order: null, limits: limitsOf(input) });
  return (input) => ({ order: placeOrder(order, input), limits: limitsOf(input) });
}

/** Limits that do not depend on the input are checked once, when the task is declared. */
function limitsWith(rule: LimitRule): (input: unknown) => Placement["limits"] {
  const { uses } = rule;
  if (typeof uses === "function" || uses.some((use) => typeof use.key === "function")) {
    return (input) => placeLimits(rule, input);
  }
  const placed = Object.freeze(placeLimits(rule, undefined));
  return () => placed;
}

function orderRule(order: AnyOptions["order"]): OrderRule | null {
  if (order === undefined) return null;
  if (typeof order === "function") return { keyOf: order, scope: null, blocks: false };
  checkOptions("order", order, ["key", "scope", "onFailure"]);
  const { key, scope, onFailure = "continue" } = order;
  return {
    keyOf: checkFunction("order.key", key),
    scope: scope === undefined ? null : checkName("scope", scope),
    blocks: checkOneOf("order.onFailure", onFailure, ["continue", "block"]) === "block",
  };
}

function limitUses(limits: unknown, task: string): LimitRule["uses"] {
  if (typeof limits === "function") return limits as LimitRule["uses"];
  return limits === undefined ? [] : Object.freeze(usesOf(limits, task));
}

function checkConcurrency(value: number | undefined): number | null {
  return value === undefined ? null : checkInteger("concurrency", value, CONCURRENCY_RANGE);
}

function checkSchema(option: string, value: unknown): Schema | undefined {
  if (value === undefined || isSchema(value)) return value;
  throw new SluiceError("invalid_option", `${option} must be a Standard Schema or type<T>()`, {
    details: { option },
  });
}
