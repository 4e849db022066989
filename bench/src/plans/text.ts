import type { Finding } from "./findings.js";
import type { ScenarioSeen, Seen } from "./seen.js";
import type { SlotTimes, Times } from "./times.js";

/** The file of a scenario. */
export function scenarioText(seen: ScenarioSeen, pending: number, version: string): string {
  const { scenario, noPlans } = seen;
  const head = [
    `${scenario.name}: ${pending.toLocaleString("en")} waiting tasks of ${scenario.about}.`,
    `PostgreSQL ${version}, warm caches. Each call is rolled back, so that all of them see the same data.`,
    "Times are measured in the session, without auto_explain and without the commit.",
    noPlans === null
      ? "auto_explain logs the plans of the call and of every statement inside its functions."
      : `No plans: auto_explain is not available (${noPlans}).`,
  ];
  return [head.join("\n"), ...seen.calls.map(callText), ...slotText(seen.slots)].join("\n\n");
}

function callText({ call, times, look }: Seen): string {
  const head = `== ${call}: ${timesText(times)}`;
  if (look === null) return `${head}\n`;
  const faults = look.faults.map((fault) => `!! ${fault}\n`).join("");
  return `${head}; ${look.pages} pages, ${look.statements} statements\n${faults}\n${look.text}`;
}

function slotText(slots: SlotTimes | null): string[] {
  if (slots === null) return [];
  const line = (what: string, times: Times): string => `${what}: ${timesText(times)}`;
  return [
    [
      "== A single task",
      line("claim it and take its slot", slots.acquire),
      line("claim one without a limit", slots.claimPlain),
      line("settle it and give its slot back", slots.release),
      line("settle one without a limit", slots.settlePlain),
      "",
    ].join("\n"),
  ];
}

function timesText({ median, min, max, calls }: Times): string {
  return `median ${ms(median)} of ${calls} calls (${ms(min)} - ${ms(max)})`;
}

function ms(n: number): string {
  return `${n.toFixed(2)} ms`;
}

/** What a reader of the report wants to know. */
export function summaryText(seen: readonly ScenarioSeen[], findings: readonly Finding[], pending: number): string {
  const head = ["scenario", "call", "median", "min - max", "pages", "statements"];
  const rows = seen.flatMap(({ scenario, calls }) =>
    calls.map((c) => [
      scenario.name,
      c.call,
      ms(c.times.median),
      `${c.times.min.toFixed(2)} - ${c.times.max.toFixed(2)}`,
      String(c.look?.pages ?? "-"),
      String(c.look?.statements ?? "-"),
    ]),
  );
  const about = seen.map(({ scenario }) => `- \`${scenario.name}\`: ${scenario.about}`).join("\n");
  const table = [head, head.map(() => "---"), ...rows].map((r) => `| ${r.join(" | ")} |`).join("\n");
  const intro = `Calls of a worker beside ${pending.toLocaleString("en")} waiting tasks, with warm caches and without the commit:`;
  return [intro, about, table, ...slotLines(seen), verdict(seen, findings)].join("\n\n") + "\n";
}

function slotLines(seen: readonly ScenarioSeen[]): string[] {
  return seen.flatMap(({ slots }) => {
    if (slots === null) return [];
    const { acquire, release, claimPlain, settlePlain } = slots;
    return [
      `A single task, medians of ${acquire.calls} calls: to claim it and take its slot ${ms(acquire.median)} (without a limit ${ms(claimPlain.median)}), to settle it and give its slot back ${ms(release.median)} (without a limit ${ms(settlePlain.median)}).`,
    ];
  });
}

function verdict(seen: readonly ScenarioSeen[], findings: readonly Finding[]): string {
  const reason = seen.find(({ noPlans }) => noPlans !== null)?.noPlans;
  const blind = reason == null ? [] : [`Plans were not checked: auto_explain is not available (${reason}).`];
  const list = findings.map((f) => `- ${f.scenario}, ${f.call}: ${f.what}`);
  const clean =
    reason == null
      ? "No plan scans a table that grows with the backlog, and no filter removes more rows than a batch has."
      : "The times are within their limits.";
  return [...blind, ...(list.length === 0 ? [clean] : ["Found:", "", ...list])].join("\n");
}
