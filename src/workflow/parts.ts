import type { Json, TemplateData } from "./graph.js";

/** A reference: its root and the path from there. */
export interface Refer {
  readonly root: string;
  readonly path: readonly string[];
}

/**
 * A template as text with holes: parts[0], the first reference, parts[1], and so on to the last part. Joined with the
 * JSON text of the referenced values, it is the rendered JSON. Rendering needs no recursion and keeps numbers and text
 * as they were stored.
 */
interface Parts {
  readonly parts: readonly string[];
  readonly refs: readonly Refer[];
}

const PATH_STEPS_MAX = 64;

/** Splits a template. `refuse` gets the error of an invalid reference, and must throw. */
export function partsOf(template: TemplateData, refuse: (why: string) => never): Parts {
  const parts: string[] = [];
  const refs: Refer[] = [];
  let text = "";
  const visit = (value: Json): void => {
    if (value === null || typeof value !== "object") text += JSON.stringify(value);
    else if (Array.isArray(value)) visitList(value as readonly Json[]);
    else if (Object.hasOwn(value, "$ref")) visitRef(value as Marked);
    else if (Object.hasOwn(value, "$literal")) visitLiteral(value as Marked);
    else visitObject(value as Marked);
  };
  const visitRef = (value: Marked): void => {
    refs.push(referOf(value, refuse));
    parts.push(text);
    text = "";
  };
  const visitLiteral = (value: Marked): void => {
    onlyKey(value, "$literal", refuse);
    text += JSON.stringify(value["$literal"]);
  };
  const visitList = (list: readonly Json[]): void => {
    text += "[";
    list.forEach((member, i) => {
      if (i > 0) text += ",";
      visit(member);
    });
    text += "]";
  };
  const visitObject = (value: Marked): void => {
    text += "{";
    Object.keys(value).forEach((key, i) => {
      text += `${i > 0 ? "," : ""}${JSON.stringify(key)}:`;
      visit(value[key]!);
    });
    text += "}";
  };
  visit(template);
  parts.push(text);
  return { parts, refs };
}

/** Returns the value of a template without references. */
export function literalOf(template: TemplateData): Json {
  const { parts } = partsOf(template, (why) => {
    throw new Error(why);
  });
  return JSON.parse(parts[0]!) as Json;
}

type Marked = Readonly<Record<string, Json>>;

function referOf(value: Marked, refuse: (why: string) => never): Refer {
  onlyKey(value, "$ref", refuse);
  const steps: unknown = value["$ref"];
  if (!Array.isArray(steps) || !steps.every(isStep) || typeof steps[0] !== "string") {
    return refuse('"$ref" must be a list: a root, then the names and indexes of the path');
  }
  if (steps.length > PATH_STEPS_MAX) {
    return refuse(`a reference has more than ${PATH_STEPS_MAX} steps`);
  }
  return { root: steps[0], path: steps.slice(1).map(String) };
}

function isStep(step: unknown): step is string | number {
  return typeof step === "string" || (Number.isInteger(step) && Number(step) >= 0);
}

function onlyKey(value: Marked, key: string, refuse: (why: string) => never): void {
  if (Object.keys(value).length > 1) refuse(`an object with "${key}" must have no other keys`);
}
