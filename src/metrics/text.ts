import type { Sample } from "./histogram.js";

/** A metric as it appears in a scrape. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly values: readonly Sample[];
}

export const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Metrics in Prometheus' text format, version 0.0.4. */
export function textOf(families: readonly Family[]): string {
  return families.map(familyText).join("\n");
}

function familyText({ name, help, type, values }: Family): string {
  const lines = values.map(
    ({ metricName = name, labels, value }) => `${metricName}${labelText(labels)} ${numberText(value)}\n`,
  );
  return `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value).replaceAll('"', '\\"')}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

// A newline ends the sample, so a newline in the name of a task type or limit must be escaped.
function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  if (value === Infinity) return "+Inf";
  return value === -Infinity ? "-Inf" : String(value);
}
