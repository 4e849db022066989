import { SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";

/** The scope in which references may be used: a whole definition, or one item of one `each`. */
export interface Home {
  readonly workflow: string;
  /** The `each` whose item it refers to. */
  readonly each?: string;
}

/** The value that a reference stands for. */
export interface RefData {
  readonly home: Home;
  readonly root: string;
  readonly path: readonly string[];
  /** ended: reads the node's outcome, in any state. outside: reads from outside its branch, which may not be taken. */
  readonly as?: "ended" | "outside";
}

const known = new WeakMap<object, RefData>();

// Members that JavaScript itself reads when it needs a value. None of them can be a step of a path.
const WANTS: ReadonlyMap<string, string> = new Map([
  ["then", "awaited"],
  ["toJSON", "turned into JSON"],
  ["toString", "turned into text"],
  ["toLocaleString", "turned into text"],
  ["valueOf", "used as a value"],
]);

/**
 * Creates a reference. Every member is a reference too, and any use of its value throws, because there is no value yet.
 */
export function makeRef(data: RefData): object {
  const refuse =
    (used: string): (() => never) =>
    () => {
      throw misused(data, used);
    };
  // The target is a function, so that calling a member (`list.map(...)`) can also throw an explanation.
  const proxy: object = new Proxy(() => undefined, {
    get: (_target, key) => (typeof key === "symbol" ? symbolOf(data, key) : step(data, key)),
    apply: refuse("called"),
    construct: refuse("called"),
    has: refuse("searched for keys"),
    ownKeys: refuse("spread or listed"),
    getOwnPropertyDescriptor: refuse("searched for keys"),
    set: refuse("changed"),
    defineProperty: refuse("changed"),
    deleteProperty: refuse("changed"),
  });
  known.set(proxy, data);
  return proxy;
}

/** Returns the data of a reference; undefined for any other value. */
export function refData(value: unknown): RefData | undefined {
  const isObject = typeof value === "function" || (typeof value === "object" && value !== null);
  return isObject ? known.get(value) : undefined;
}

/** Formats a reference as it is written in code. */
export function pathText({ root, path }: Pick<RefData, "root" | "path">): string {
  return root + path.map((key) => (/^\d+$/.test(key) ? `[${key}]` : `.${key}`)).join("");
}

function step(data: RefData, key: string): object {
  const used = WANTS.get(key);
  if (used !== undefined) throw misused(data, used);
  return makeRef({ ...data, path: [...data.path, key] });
}

/** Symbols belong to JavaScript: those that need a value are refused, the others are undefined. */
function symbolOf(data: RefData, key: symbol): undefined {
  if (key === Symbol.toPrimitive) throw misused(data, "used as text or as a number");
  if (key === Symbol.iterator || key === Symbol.asyncIterator) throw misused(data, "iterated");
  return undefined;
}

function misused(data: RefData, used: string): SluiceError {
  const { workflow } = data.home;
  return new SluiceError(
    "invalid_workflow",
    `workflow ${quote(workflow)}: ${quote(pathText(data)).slice(1, -1)} is a reference and cannot be ${used}: ` +
      "the definition runs once, before there are values. Pass the reference to a node, " +
      "use when to decide, and use each for the items of a list",
    { details: { workflow, reference: pathText(data) } },
  );
}
