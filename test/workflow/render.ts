import { INDEX, INPUT, ITEM, type CompiledTemplate } from "../../src/postgres/workflow/declare.js";

/** The values of a run: of its input, of the item and its index, and of the nodes by number. */
export type Values = ReadonlyMap<number, unknown>;

/** Renders a compiled template as SQL does: joins its parts with the referenced values as text. */
export function render({ parts, nodes, paths }: CompiledTemplate, values: Values): unknown {
  const pieces = parts.map((part, i) =>
    i === nodes.length ? part : part + (JSON.stringify(at(values.get(nodes[i]!), paths[i]!)) ?? "null"),
  );
  return JSON.parse(pieces.join(""));
}

/** Renders the same directly from the data of the template. */
export function renderData(template: unknown, values: Values, numberOf: ReadonlyMap<string, number>): unknown {
  if (typeof template !== "object" || template === null) return template;
  if (Array.isArray(template)) return template.map((one) => renderData(one, values, numberOf));
  if (Object.hasOwn(template, "$literal")) return Reflect.get(template, "$literal");
  if (Object.hasOwn(template, "$ref")) {
    const [root, ...path] = Reflect.get(template, "$ref") as string[];
    return at(values.get(numberOf.get(root!)!), path);
  }
  const entries = Object.entries(template);
  return Object.fromEntries(entries.map(([key, of]) => [key, renderData(of, values, numberOf)]));
}

export const ROOT_NUMBERS = { input: INPUT, item: ITEM, index: INDEX };

function at(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const step of path) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, step)) return null;
    if (Array.isArray(found) && !/^\d+$/.test(step)) return null;
    found = Reflect.get(found, step);
  }
  return found ?? null;
}
