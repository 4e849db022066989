import type { SluiceError } from "../core/error.js";
import { isSchema, type Schema } from "../core/schema.js";
import type { TaskTerms } from "../core/terms.js";
import { invalidWorkflow } from "./fault.js";
import type { GraphNode, On, TemplateData } from "./graph.js";
import { makeRef, pathText, type Home, type RefData } from "./proxy.js";
import { templateData } from "./template.js";
import { use, type Uses } from "./uses.js";

/** A dependency as it is written into the graph. */
export interface DraftEdge {
  readonly node: string;
  readonly on: On;
  readonly recover?: boolean;
}

/** A node while its workflow is being written. */
interface DraftNode {
  readonly name: string;
  readonly kind: GraphNode["kind"];
  /** The fields specific to its kind. */
  readonly said: object;
  readonly part: readonly string[];
  /** The branches that contain it, outermost first. */
  readonly branch: readonly string[];
  readonly after: readonly DraftEdge[];
  readonly uses: Uses;
}

/** The context of a template: its node, its branch, and the `each` whose item it may use. */
interface Reader {
  readonly node?: string;
  readonly branch?: readonly string[];
  readonly item?: Home;
}

/** A template written in code, as data. */
interface Written {
  readonly data: TemplateData;
  readonly uses: Uses;
  /** Whether it contains no references. */
  readonly literal: boolean;
}

/** Nodes that a handle stands for. */
interface Handle {
  readonly home: Home;
  readonly names: readonly string[];
  /** Whether the handle is a single node, whose failure can be handled. */
  readonly single: boolean;
}

const handles = new WeakMap<object, Handle>();

/** One workflow while it is being written: its nodes, the tasks they call, and the scope that may currently write. */
export class Draft {
  readonly home: Home;
  readonly nodes: DraftNode[] = [];
  readonly #byName = new Map<string, DraftNode>();
  readonly contracts = new Set<TaskTerms>();
  readonly events = new Map<string, Schema>();
  /** The scope whose callback is running; null if no scope may write. */
  writer: object | null = null;

  constructor(workflow: string) {
    this.home = Object.freeze({ workflow });
  }

  get workflow(): string {
    return this.home.workflow;
  }

  fault(message: string, node?: string): SluiceError {
    return invalidWorkflow(message, { workflow: this.workflow, node });
  }

  /** Lets only the scope of this callback write while the callback runs. */
  writing<R>(writer: object | null, write: () => R, node?: string): R {
    const before = this.writer;
    this.writer = writer;
    try {
      const out = write();
      if (out instanceof Promise) {
        out.catch(() => {});
        throw this.fault("a callback must not be async: it only defines nodes", node);
      }
      return out;
    } finally {
      this.writer = before;
    }
  }

  add(node: DraftNode): void {
    this.nodes.push(node);
    this.#byName.set(node.name, node);
  }

  kindOf(name: string): GraphNode["kind"] | undefined {
    return this.#byName.get(name)?.kind;
  }

  ref(root: string, path: readonly string[] = [], home: Home = this.home): object {
    return makeRef({ home, root, path });
  }

  /** Returns a reference to the outcome of a node, whether or not it succeeded. */
  endedRef(root: string, path: readonly string[] = []): object {
    return makeRef({ home: this.home, root, path, as: "ended" });
  }

  /** Returns a template as data, and the nodes that it refers to. */
  template(value: unknown, { node, item, branch = [] }: Reader = {}): Written {
    const uses: Parameters<typeof use>[0] = new Map();
    let literal = true;
    const noted = (data: RefData): void => {
      if (data.home !== this.home && data.home !== item) throw this.fault(foreign(data), node);
      literal = false;
      if (data.home !== this.home || data.root === "input") return;
      if (data.as === undefined && !this.#isIn(data.root, branch)) {
        throw this.fault(leaked(data), node);
      }
      use(uses, data.root, data.as ?? "value");
    };
    const data = templateData(value, { workflow: this.workflow, node, use: noted });
    return { data, uses, literal };
  }

  /** Returns whether this branch is taken only if the node's branch is taken. */
  #isIn(name: string, branch: readonly string[]): boolean {
    const { branch: made = [] } = this.#byName.get(name) ?? {};
    return made.every((one, i) => branch[i] === one);
  }

  /** Registers an object that other nodes can depend on. */
  handle<T extends object>(thing: T, names: readonly string[], single = false): T {
    handles.set(thing, { home: this.home, names, single });
    return thing;
  }

  /** Makes a copy of an object stand for the same nodes. */
  alike<T extends object>(thing: object, copy: T): T {
    const handle = handles.get(thing);
    if (handle !== undefined) handles.set(copy, handle);
    return copy;
  }

  handleOf(thing: unknown, node?: string): Handle {
    const isObject = typeof thing === "function" || (typeof thing === "object" && thing !== null);
    const handle = isObject ? handles.get(thing) : undefined;
    if (handle?.home === this.home) return handle;
    throw this.fault(
      handle === undefined
        ? "it can only come after nodes, which task, each, sequence, when, onFailure, sleep and waitFor return"
        : `it cannot come after a node of another workflow, ${JSON.stringify(handle.home.workflow)}`,
      node,
    );
  }

  event(name: string, schema: unknown, node: string): void {
    if (schema === undefined) return;
    if (!isSchema(schema)) throw this.fault("schema must be a Standard Schema or type<T>()", node);
    if ((this.events.get(name) ?? schema) !== schema) {
      throw this.fault(`event ${JSON.stringify(name)} has a different schema in another node`, node);
    }
    this.events.set(name, schema);
  }
}

function leaked(data: RefData): string {
  return (
    `${pathText(data)} belongs to a branch that may not run: ` +
    "return it from the callback of the branch, and read it from yes, no or out"
  );
}

function foreign(data: RefData): string {
  const { each, workflow } = data.home;
  return each === undefined
    ? `${pathText(data)} is a reference of another workflow, ${JSON.stringify(workflow)}`
    : `${pathText(data)} exists only in the input of the each ${JSON.stringify(each)}`;
}
