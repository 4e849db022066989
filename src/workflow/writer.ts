import { checkFunction, checkOptions } from "../core/option.js";
import type { TaskTerms } from "../core/terms.js";
import { quote } from "../core/quote.js";
import type { Draft, DraftEdge } from "./draft.js";
import { inPlace } from "./fault.js";
import type { GraphNode, TemplateData } from "./graph.js";
import { readNode } from "./node.js";
import { seenOutside } from "./outside.js";
import { literalOf } from "./parts.js";
import { afterEdges, conditionData, EACH_OUTPUTS, endedOf, endsOf } from "./pieces.js";
import { refData, type Home } from "./proxy.js";
import { needs, usesOf, type Uses } from "./uses.js";

/** The part of a workflow that a writer writes. */
interface Part {
  /** Guards without which its nodes are skipped: a branch, or a failure. */
  readonly guards: readonly DraftEdge[];
  /** Nodes whose failure started this branch: they may be referenced, but their success is not awaited. */
  readonly failed: readonly string[];
  /** The branches that contain this part, outermost first. */
  readonly branch: readonly string[];
  /** Whether each node depends on the previous one. */
  readonly chained: boolean;
  /** The sequences that contain this part. */
  readonly part: readonly string[];
}

type Said = Readonly<Record<string, unknown>>;
type Write = (scope: Writer, ...more: unknown[]) => unknown;

const WHOLE: Part = { guards: [], failed: [], branch: [], chained: false, part: [] };
const WORK_OPTIONS = ["after", "priority", "attempts"];

/**
 * Writes the nodes of one part of a workflow. `Scope` declares the types of its arguments and results; everything is
 * checked again at run time, because a workflow may be written in JavaScript.
 */
export class Writer {
  readonly #draft: Draft;
  readonly #part: Part;
  /** The current last nodes of the part: a chained part continues from there. */
  #ends: readonly string[];
  readonly #made: string[] = [];

  constructor(draft: Draft, part: Part = WHOLE, ends: readonly string[] = []) {
    this.#draft = draft;
    this.#part = part;
    this.#ends = ends;
  }

  task(name: string, contract: unknown, input?: unknown, options: Said = {}): object {
    this.#check(name, "task", options, WORK_OPTIONS);
    const work = this.#work(name, contract, options);
    const { data, uses, literal } = this.#template(name, input);
    if (literal) this.#checkLiteral(name, contract as TaskTerms, data);
    this.#add("task", name, { options, uses, said: { ...work, input: data } });
    return this.#draft.handle(this.#draft.ref(name), [name], true);
  }

  each(name: string, contract: unknown, items: unknown, input: unknown, options: Said = {}): object {
    this.#check(name, "each", options, [...WORK_OPTIONS, "window", "onError"]);
    const work = this.#work(name, contract, options);
    const list = this.#template(name, items);
    const item = this.#itemInput(name, input);
    if (item.literal) this.#checkLiteral(name, contract as TaskTerms, item.data);
    const { window, onError } = options;
    const said = { ...work, items: list.data, input: item.data, window, onError };
    this.#add("each", name, { options, said, uses: usesOf(list.uses, item.uses) });
    const outputs = EACH_OUTPUTS.map((key) => [key, this.#draft.ref(name, [key])] as const);
    return this.#draft.handle(Object.freeze(Object.fromEntries(outputs)), [name], true);
  }

  sequence(name: string, write: Write): object {
    this.#check(name, "sequence");
    const { part, chained } = this.#part;
    const child = new Writer(
      this.#draft,
      { ...this.#part, chained: true, part: [...part, name] },
      chained ? this.#ends : [],
    );
    const out = this.#run(name, child, write);
    if (chained) this.#ends = child.#ends;
    this.#made.push(...child.#made);
    return this.#draft.handle(Object.freeze({ out }), child.#made.length === 0 ? [] : child.#ends);
  }

  when(name: string, ref: unknown, ...args: readonly unknown[]): object {
    this.#check(name, "when");
    if (refData(ref) === undefined) throw this.#fault("a when needs a reference", name);
    const [condition, yes, no] = typeof args[0] === "function" ? ["truthy", ...args] : args;
    const said = this.#condition(name, condition);
    const { data, uses } = this.#template(name, ref);
    this.#add("when", name, { uses, said: { ...said, ref: data } });
    const then = this.#branch(name, "then", yes);
    const other = no === undefined ? { ends: [], out: undefined } : this.#branch(name, "else", no);
    const ends = [name, ...then.ends, ...other.ends];
    if (this.#part.chained) this.#ends = ends;
    const [yesOut, noOut] = [then, other].map(({ out }) => seenOutside(this.#draft, out, name));
    return this.#draft.handle(Object.freeze({ yes: yesOut, no: noOut }), ends);
  }

  onFailure(failed: unknown, write: Write, options: Said = {}): object {
    const { names, single } = this.#draft.handleOf(failed);
    const [node] = names;
    if (node === undefined || !single) {
      throw this.#fault("onFailure takes one node: a task, an each, a sleep or a waitFor");
    }
    this.#check(node, "onFailure", options, ["recover"]);
    const guard: DraftEdge = {
      node,
      on: "failure",
      ...(options["recover"] === undefined ? {} : { recover: options["recover"] as boolean }),
    };
    // A node of this branch fails only if the branch is taken.
    const ours = this.#made.includes(node);
    const child = new Writer(this.#draft, {
      ...this.#part,
      chained: false,
      guards: [guard, ...this.#part.guards.filter(({ on }) => on === "failure" || !ours)],
      failed: [...this.#part.failed, node],
      branch: [...this.#part.branch, `${node} failed`],
    });
    const made = this.#run(node, child, write, this.#draft.endedRef(node, ["error"]));
    if (guard.recover === true && child.#made.length === 0) {
      throw this.#fault("a branch that recovers needs at least one node", node);
    }
    const out = seenOutside(this.#draft, made, node);
    return this.#draft.handle(Object.freeze({ out }), endsOf(this.#draft, child.#made));
  }

  ended(node: unknown): object {
    return endedOf(this.#draft, node);
  }

  sleep(name: string, time: unknown, options: Said = {}): object {
    this.#check(name, "sleep", options, ["after"]);
    if (refData(time) !== undefined) {
      throw this.#fault("a sleep takes ms, or { until } with a reference to a time", name);
    }
    if (typeof time === "number") {
      this.#add("sleep", name, { options, said: { ms: time } });
    } else {
      inPlace(this.#place(name), () => checkOptions("sleep", time, ["until"]));
      const { data, uses } = this.#template(name, (time as Said)["until"]);
      this.#add("sleep", name, { options, uses, said: { until: data } });
    }
    return this.#draft.handle(Object.freeze({}), [name], true);
  }

  waitFor(name: string, event: string, options: Said = {}): object {
    this.#check(name, "waitFor", options, ["after", "timeoutMs", "schema"]);
    this.#draft.event(event, options["schema"], name);
    this.#add("waitFor", name, { options, said: { event, timeoutMs: options["timeoutMs"] } });
    return this.#draft.handle(this.#draft.ref(name), [name], true);
  }

  #place(node: string): { workflow: string; node: string } {
    return { workflow: this.#draft.workflow, node };
  }

  #fault(message: string, node?: string): Error {
    return this.#draft.fault(message, node);
  }

  #check(name: string, what: string, options: Said = {}, known: readonly string[] = []): void {
    if (this.#draft.writer !== this) {
      throw this.#fault(
        `${what} was called on a builder whose callback is not running: use the builder of the innermost callback`,
        name,
      );
    }
    inPlace(this.#place(name), () => checkOptions(what, options, known));
  }

  #work(name: string, contract: unknown, { priority, attempts }: Said): object {
    const terms = contract as TaskTerms | null | undefined;
    if (typeof terms?.place !== "function") {
      throw this.#fault("its task must be made by task(name, options)", name);
    }
    this.#draft.contracts.add(terms);
    return { type: terms.type, queue: terms.queue, priority, attempts };
  }

  /** An input without references is the same in every run, so it can be checked now. */
  #checkLiteral(name: string, terms: TaskTerms, input: TemplateData): void {
    const parsed = inPlace(this.#place(name), () => terms.parse(literalOf(input)));
    // The process that runs the task calls an asynchronous schema again.
    if (parsed instanceof Promise) parsed.catch(() => {});
  }

  #condition(name: string, condition: unknown): object {
    const { is, value } = inPlace(this.#place(name), () => conditionData(condition));
    if (value === undefined) return { is };
    const { data, literal } = this.#template(name, value);
    if (!literal) throw this.#fault("a condition compares with a value, not a reference", name);
    return { is, value: literalOf(data) };
  }

  #itemInput(name: string, input: unknown): ReturnType<Draft["template"]> {
    const make = inPlace(this.#place(name), () => checkFunction("input", input)) as (...refs: object[]) => unknown;
    const home: Home = Object.freeze({ workflow: this.#draft.workflow, each: name });
    const refs = ["item", "index"].map((root) => this.#draft.ref(root, [], home));
    const made = this.#draft.writing(null, () => make(...refs), name);
    return this.#template(name, made, home);
  }

  #template(node: string, value: unknown, item?: Home): ReturnType<Draft["template"]> {
    const { branch } = this.#part;
    return this.#draft.template(value, { node, branch, ...(item === undefined ? {} : { item }) });
  }

  #branch(name: string, on: "then" | "else", write: unknown): { ends: string[]; out: unknown } {
    const guards: DraftEdge[] = [{ node: name, on }];
    const branch = [...this.#part.branch, `${name} ${on}`];
    const child = new Writer(this.#draft, { ...this.#part, guards, branch, chained: false });
    const out = this.#run(name, child, write as Write);
    this.#made.push(...child.#made);
    return { ends: endsOf(this.#draft, child.#made), out };
  }

  #run(name: string, child: Writer, write: Write, ...more: unknown[]): unknown {
    inPlace(this.#place(name), () => checkFunction("callback", write));
    return this.#draft.writing(child, () => write(child, ...more), name);
  }

  /**
   * Returns the nodes of which only the end is awaited: those whose failure started this branch, and those read as
   * ended.
   */
  #endsOf(uses: Uses): string[] {
    const { failed } = this.#part;
    return [...uses.keys()].filter((one) => failed.includes(one) || !needs(uses, one));
  }

  #add(kind: GraphNode["kind"], name: string, node: Added): void {
    const { options = {}, uses = new Map(), said } = node;
    const { guards, chained, part, branch } = this.#part;
    const edges = [
      ...guards,
      ...inPlace(this.#place(name), () => afterEdges(this.#draft, options["after"], name)),
      ...(chained ? this.#ends : []).map((end) => ({ node: end, on: "success" as const })),
      ...this.#endsOf(uses).map((one) => ({ node: one, on: "end" as const })),
    ];
    // The first edge to a node counts: a guard is stronger than a dependency.
    const after = edges.filter((edge, i) => edges.findIndex((e) => e.node === edge.node) === i);
    const only = after.find(({ node: before, on }) => on !== "success" && needs(uses, before));
    if (only !== undefined) throw this.#fault(onlyOver(only.node), name);
    // Checked now, so that an error points to the code that wrote the node.
    readNode(this.#draft.workflow, { name, kind, ...said });
    this.#draft.add({ name, kind, said, part, branch, after, uses });
    this.#made.push(name);
    if (chained) this.#ends = [name];
  }
}

interface Added {
  readonly said: object;
  readonly options?: Said;
  readonly uses?: Uses;
}

function onlyOver(name: string): string {
  return (
    `it reads the output of ${quote(name)}, but may run although that node failed: ` +
    "read ended(...) of that node, or its failure"
  );
}
