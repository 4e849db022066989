import type { Result } from "../result.js";

/** A configuration, with all who have it. */
export interface Config {
  readonly who: string;
  readonly config: string;
}

/** Each configuration once. Where a variant is set in several ways, with the workloads of each. */
export function configsOf(results: readonly Result[]): Config[] {
  const users = new Map<string, Result[]>();
  for (const result of results) {
    const key = `${variantOf(result)}\n${result.subject.config}`;
    users.set(key, [...(users.get(key) ?? []), result]);
  }
  const groups = [...users.values()];
  return groups.map((group) => {
    const [first] = group as [Result];
    const alike = groups.filter(([g]) => variantOf(g!) === variantOf(first));
    const workloads = [...new Set(group.map(({ workload }) => workload))].join(", ");
    const who = alike.length === 1 ? variantOf(first) : `${variantOf(first)} (${workloads})`;
    return { who, config: first.subject.config };
  });
}

function variantOf({ subject }: Result): string {
  return `${subject.library} ${subject.version}, ${subject.variant}`;
}
