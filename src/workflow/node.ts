import { SluiceError } from "../core/error.js";
import { checkName } from "../core/name.js";
import { checkInteger, checkNumber } from "../core/number.js";
import { checkOneOf } from "../core/option.js";
import { quote } from "../core/quote.js";
import { inPlace, invalidWorkflow } from "./fault.js";
import { ROOTS } from "./graph.js";
import type { Edge, GraphNode, Json, On, WhenData } from "./graph.js";

/** A JSON object. */
export type Data = Readonly<Record<string, Json | undefined>>;

const BASE_KEYS = ["name", "kind", "after", "part"];
const WORK_KEYS = [...BASE_KEYS, "type", "queue", "input", "priority", "attempts"];
const KEYS = {
  task: WORK_KEYS,
  each: [...WORK_KEYS, "items", "with_items", "window", "concurrency", "onError", "hold"],
  when: [...BASE_KEYS, "ref", "is", "value"],
  sleep: [...BASE_KEYS, "ms", "until"],
  waitFor: [...BASE_KEYS, "event", "timeoutMs"],
} as const;
const KINDS = Object.keys(KEYS) as (keyof typeof KEYS)[];
const ON: readonly On[] = ["success", "failure", "end", "then", "else"];

const PRIORITY_RANGE = { min: -32_000, max: 32_000 };
const ATTEMPTS_RANGE = { min: 1, max: 32_000 };
const WINDOW_RANGE = { min: 1, max: 1_000_000 };
const YEAR_MS = 365 * 24 * 3_600_000;
const SLEEP_RANGE = { min: 0, max: YEAR_MS };
const TIMEOUT_RANGE = { min: 1, max: YEAR_MS };
const ISO = /^\d{4}-\d{2}-\d{2}([t ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(z|[+-]\d{2}(:?\d{2})?)?)?$/i;
const FINITE = { min: -Number.MAX_VALUE, max: Number.MAX_VALUE };

/** Reads one node by its kind. Checks names and numbers, but not yet references and dependencies. */
export function readNode(workflow: string, data: Json): GraphNode {
  if (!isData(data)) throw invalidWorkflow("a node must be an object", { workflow });
  const place = { workflow, node: data["name"] };
  return inPlace(place, () => {
    const name = nodeName(data["name"]);
    const kind = checkOneOf("kind", data["kind"], KINDS);
    const stray = Object.keys(data).find((key) => !KEYS[kind].includes(key));
    need(stray === undefined, `unknown key ${quote(stray)}; ${kind} has ${KEYS[kind].join(", ")}`);
    return {
      name,
      kind,
      ...ofKind(kind, data),
      after: afterOf(data),
      ...partOf(data),
    } as GraphNode;
  });
}

function nodeName(value: unknown): string {
  const name = checkName("node", value);
  need(!ROOTS.some((root) => root === name), `a node cannot be named ${ROOTS.join(", ")}`);
  return name;
}

function ofKind(kind: keyof typeof KEYS, data: Data): object {
  switch (kind) {
    case "task":
      return workOf(data);
    case "each":
      return { ...workOf(data), ...eachOf(data) };
    case "when":
      return conditionOf(data);
    case "sleep":
      return sleepOf(data);
    default:
      return waitOf(data);
  }
}

function workOf(data: Data): object {
  const { priority, attempts, input = null, queue = "default" } = data;
  return {
    type: checkName("task", data["type"]),
    queue: checkName("queue", queue),
    input,
    ...(priority === undefined ? {} : { priority: checkInteger("priority", priority, PRIORITY_RANGE) }),
    ...(attempts === undefined ? {} : { attempts: checkInteger("attempts", attempts, ATTEMPTS_RANGE) }),
  };
}

function eachOf(data: Data): object {
  // Tools may set it. An `each` is not a task, so it has no slots to hold.
  need((data["hold"] ?? false) === false, "hold must be false: an each never holds slots");
  return {
    items: listIn(oneOfTwo(data, "items", "with_items")),
    window: checkInteger("window", oneOfTwo(data, "window", "concurrency"), WINDOW_RANGE),
    onError: checkOneOf("onError", data["onError"] ?? "failFast", ["failFast", "finish", "collect"]),
  };
}

/** Checks for a list, or a reference that may resolve to one. */
function listIn(items: Json): Json {
  const refers = isData(items) && items["$ref"] !== undefined;
  const list = isData(items) ? items["$literal"] : items;
  need(refers || Array.isArray(list), "items must be a list, or a reference to one");
  return items;
}

function conditionOf(data: Data): Pick<WhenData, "ref" | "is" | "value"> {
  const { ref, value, is: word = "truthy" } = data;
  need(ref !== undefined, "ref is missing");
  const is = checkOneOf("is", word, ["truthy", "equals", "differs", "above", "below", "exists"]);
  const compares = is !== "truthy" && is !== "exists";
  need(
    (value !== undefined) === compares,
    "value must be given for equals, differs, above and below, and only for them",
  );
  if (is === "above" || is === "below") checkNumber("value", value, FINITE);
  return { ref: ref!, is, ...(value === undefined ? {} : { value }) };
}

function sleepOf({ ms, until }: Data): object {
  need((ms === undefined) !== (until === undefined), "a sleep needs either ms or until");
  return until === undefined ? { ms: checkInteger("ms", ms, SLEEP_RANGE) } : { until: timeIn(until) };
}

/** Checks for a time, or a reference that may resolve to one, in the format of `sluice.workflow_time`. */
function timeIn(until: Json): Json {
  if (isData(until) && until["$ref"] !== undefined) return until;
  const time = isData(until) ? until["$literal"] : until;
  need(
    Number.isInteger(time) || (typeof time === "string" && isTime(time)),
    "until must be ISO 8601 text, ms since 1970, or a reference to one of them",
  );
  return until;
}

function isTime(text: string): boolean {
  return ISO.test(text) && !Number.isNaN(Date.parse(text.slice(0, 10)));
}

function waitOf({ event, timeoutMs }: Data): object {
  return {
    event: checkName("event", event),
    ...(timeoutMs === undefined ? {} : { timeoutMs: checkInteger("timeoutMs", timeoutMs, TIMEOUT_RANGE) }),
  };
}

function afterOf(data: Data): Edge[] {
  const { after = [] } = data;
  need(Array.isArray(after), "after must be a list");
  return (after as readonly Json[]).map(edgeIn);
}

function edgeIn(edge: Json): Edge {
  if (typeof edge === "string") return edge;
  need(isData(edge), "after must contain names of nodes, or objects with node and on");
  const { node, on: word = "success", recover, ...rest } = edge as Data;
  const stray = Object.keys(rest)[0];
  need(stray === undefined, `unknown key ${quote(stray)} in after; it has node, on, recover`);
  need(typeof node === "string", "node in after must be the name of a node");
  const on = checkOneOf("on", word, ON);
  if (recover !== undefined) {
    need(typeof recover === "boolean" && on === "failure", "recover must be true or false, and needs on: failure");
  }
  if (on === "success") return node as string;
  return { node: node as string, on, ...(recover === true ? { recover } : {}) };
}

function partOf({ part }: Data): { part?: string[] } {
  if (part === undefined) return {};
  need(Array.isArray(part), "part must be a list of names");
  return { part: (part as readonly Json[]).map((name) => checkName("node", name)) };
}

/** Reads a field by its own name or its alternative spelling, but not both. */
function oneOfTwo(data: Data, ours: string, other: string): Json {
  const found = data[ours] ?? data[other];
  need(data[ours] === undefined || data[other] === undefined, `${ours} and ${other} mean the same: use one of them`);
  need(found !== undefined, `${ours} is missing`);
  return found!;
}

/** The caller adds the node to the error; see `inPlace`. */
function need(holds: boolean, message: string): void {
  if (!holds) throw new SluiceError("invalid_option", message);
}

function isData(value: Json): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
