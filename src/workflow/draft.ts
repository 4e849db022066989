import type { SluiceError } from "../core/error.js";
import { isSchema, type Schema } from "../core/schema.js";
import type { TaskTerms } from "../core/terms.js";
import { invalidWorkflow } from "./fault.js";
import type { GraphNode, On, TemplateData } from "./graph.js";
import { makeRef, pathText, type Home, type RefData } from "./proxy.js";
import { templateData } from "./template.js";

/** A dependency as it is written into the graph. */
export interface DraftEdge {
  readonly node: string;
  readonly on: On;
  readonly recover?: boolean;
}

/** A node while its workflow is written. */
interface DraftNode {
  readonly name: string;
  readonly kind: GraphNode["kind"];
  /** What its kind has besides. */
  readonly said: object;
  readonly part: readonly string[];
  readonly after: readonly DraftEdge[];
  /** The nodes that it refers to. */
  readonly uses: ReadonlySet<string>;
}

/** A template of code. */
interface Written {
  readonly data: TemplateData;
  /** The nodes that it refers to. */
  readonly uses: ReadonlySet<string>;
  /** Whether it refers to nothing at all. */
  readonly literal: boolean;
}

/** Nodes that a handle stands for. */
interface Handle {
  readonly home: Home;
  readonly names: readonly string[];
  /** Whether it is one node, whose failure can be watched. */
  readonly single: boolean;
}

const handles = new WeakMap<object, Handle>();

/** One workflow while it is written: its nodes, whom they call, and who may write just now. */
export class Draft {
  readonly home: Home;
  readonly nodes: DraftNode[] = [];
  readonly contracts = new Set<TaskTerms>();
  readonly events = new Map<string, Schema>();
  /** The scope whose callback runs; null when none may write. */
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

  /** Lets a callback write, and nobody else meanwhile. */
  writing<R>(writer: object | null, write: () => R, node?: string): R {
    const before = this.writer;
    this.writer = writer;
    try {
      const out = write();
      if (out instanceof Promise) {
        out.catch(() => {});
        throw this.fault(
          "a callback must not be async: it only writes down what is to be done",
          node,
        );
      }
      return out;
    } finally {
      this.writer = before;
    }
  }

  ref(root: string, path: readonly string[] = [], home: Home = this.home): object {
    return makeRef({ home, root, path });
  }

  /** A template as data, and what it refers to. `item` is the each whose items it may refer to. */
  template(value: unknown, node: string | undefined, item?: Home): Written {
    const uses = new Set<string>();
    let literal = true;
    const use = (data: RefData): void => {
      if (data.home !== this.home && data.home !== item) throw this.fault(foreign(data), node);
      literal = false;
      if (data.home === this.home && data.root !== "input") uses.add(data.root);
    };
    const data = templateData(value, { workflow: this.workflow, node, use });
    return { data, uses, literal };
  }

  /** A thing that others can come after. */
  handle<T extends object>(thing: T, names: readonly string[], single = false): T {
    handles.set(thing, { home: this.home, names, single });
    return thing;
  }

  handleOf(thing: unknown, node?: string): Handle {
    const isObject = typeof thing === "function" || (typeof thing === "object" && thing !== null);
    const handle = isObject ? handles.get(thing) : undefined;
    if (handle?.home === this.home) return handle;
    throw this.fault(
      handle === undefined
        ? "it can only come after nodes: what task, each, sequence, when, onFailure, sleep and waitFor return"
        : `it cannot come after a node of another workflow, ${JSON.stringify(handle.home.workflow)}`,
      node,
    );
  }

  event(name: string, schema: unknown, node: string): void {
    if (schema === undefined) return;
    if (!isSchema(schema)) throw this.fault("schema must be a Standard Schema or type<T>()", node);
    if ((this.events.get(name) ?? schema) !== schema) {
      throw this.fault(`event ${JSON.stringify(name)} has another schema in another node`, node);
    }
    this.events.set(name, schema);
  }
}

function foreign(data: RefData): string {
  const { each, workflow } = data.home;
  return each === undefined
    ? `${pathText(data)} is a reference of another definition, of ${JSON.stringify(workflow)}`
    : `${pathText(data)} exists only in the input of the each ${JSON.stringify(each)}`;
}
