import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { catalogue, PREFIX, type Definition } from "../../src/metrics/catalogue.js";

const textOf = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const page = textOf("docs/operate/metrics.md");
const definitions = Object.entries(catalogue) as [string, Definition][];

// As a row of a table: | `name` or `name{label}` | kind | ...
const rows = new Map(
  [...page.matchAll(/^\| `(sluice_\w+)(?:\{([\w, ]+)\})?` \| (\w+) \|/gm)].map(([, name, labels, kind]) => [
    name!,
    { labels: labels?.split(", ") ?? [], kind: kind! },
  ]),
);

test("the metrics page lists exactly the metrics of the code, with kind and labels", () => {
  const inCode = definitions.map(([name, { kind, labels = [] }]) => [PREFIX + name, { labels: [...labels], kind }]);
  expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(inCode));
});

test("the metrics page states the number of metrics", () => {
  expect(/There are (\d+) metrics/.exec(page)?.[1]).toBe(String(definitions.length));
});

test("the metrics page explains exactly the alerts that exist", () => {
  const alerts = [...textOf("docs/operate/alerts.yml").matchAll(/- alert: (\w+)/g)];
  const explained = [...page.matchAll(/^\| `(Sluice\w+)` \|/gm)];
  const named = (found: readonly RegExpExecArray[]): string[] => found.map(([, name]) => name!);
  expect(named(explained)).toEqual(named(alerts));
});
