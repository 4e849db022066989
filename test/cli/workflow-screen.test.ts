import { expect, test } from "vitest";
import { showOn, type Screen } from "../../src/cli/workflow/screen.js";
import type { RunNode, RunStatus } from "../../src/client.js";

const node = (name: string, more: Partial<RunNode> = {}): RunNode => ({
  name,
  kind: "task",
  type: "t",
  state: "running",
  counts: { total: 1, succeeded: 0, failed: 0, cancelled: 0 },
  started: 1,
  waiting: 0,
  window: null,
  task: null,
  startedAt: null,
  finishedAt: null,
  error: null,
  event: null,
  until: null,
  unserved: false,
  lastError: null,
  ...more,
});
const status = (nodes: RunNode[], progress = 0): RunStatus => ({
  id: "7",
  workflow: "nightly",
  state: "running",
  createdAt: new Date(0),
  finishedAt: null,
  reason: null,
  progress,
  nodes,
});

const ESC = String.fromCodePoint(27);
const CODES = new RegExp(`${ESC}\\[(\\d*)([A-Za-z])|[^${ESC}]`, "gu");
const COLOURS = new RegExp(`${ESC}\\[\\d+m`, "g");

/** A minimal terminal that keeps the text on its screen after all writes. */
class Terminal implements Screen {
  readonly isTTY = true;
  lines: string[] = [""];
  #row = 0;

  constructor(
    readonly columns: number,
    readonly rows: number,
  ) {}

  write(text: string): void {
    for (const [token] of text.matchAll(CODES)) this.#put(token);
  }

  #put(token: string): void {
    const up = /\[(\d+)A$/.exec(token);
    if (up !== null) this.#row -= Number(up[1]);
    else if (token.endsWith("[2K")) this.lines[this.#row] = "";
    else if (token.endsWith("[0J")) this.lines.splice(this.#row, Infinity, "");
    else if (token === "\n") this.lines[++this.#row] ??= "";
    else if (!token.startsWith(ESC)) this.lines[this.#row] += token;
    expect(this.lines[this.#row]!.length, "no line wraps").toBeLessThanOrEqual(this.columns);
    expect(this.lines.length, "nothing scrolls").toBeLessThanOrEqual(this.rows);
  }
}

const bare = (lines: string[]): string[] =>
  lines.map((line) => line.replaceAll(COLOURS, "")).filter((line) => line !== "");

test("the workflow view redraws over the previous one on a terminal, even if it is shorter", () => {
  const terminal = new Terminal(60, 10);
  const show = showOn(terminal);
  show(status([node("a"), node("b"), node("c")]));
  show(status([node("a", { state: "succeeded" }), node("b")], 0.5));
  expect(bare(terminal.lines)).toEqual(["run 7 of nightly: running, 50 %", "  ✓ a  t  succeeded", "  ● b  t  running"]);
});

test("the workflow view is cut to the size of the terminal", () => {
  const terminal = new Terminal(24, 5);
  const show = showOn(terminal);
  const nodes = Array.from({ length: 9 }, (_, i) => node(`a long name of node ${i}`));
  for (let i = 0; i < 2; i++) show(status(nodes));
  expect(bare(terminal.lines)).toEqual([
    "run 7 of nightly: runnin",
    "  ● a long name of node ",
    "  ● a long name of node ",
    "  ... and 7 more: 7 runn",
  ]);
});

test("the workflow view prefers failed and running nodes in graph order when space is short", () => {
  const terminal = new Terminal(80, 8);
  const show = showOn(terminal);
  const done = Array.from({ length: 6 }, (_, i) => node(`done ${i}`, { state: "succeeded" }));
  const next = Array.from({ length: 6 }, (_, i) => node(`next ${i}`, { state: "pending" }));
  const message = "no\n  luck\u001b[2J";
  const bad = node("bad", { state: "failed", error: { name: "Error", message, code: null } });
  show(status([...done, bad, node("now"), ...next]));
  expect(bare(terminal.lines)).toEqual([
    "run 7 of nightly: running, 0 %",
    "  ✗ bad     t  failed: no luck [2J",
    "  ● now     t  running",
    "  · next 0  t  pending",
    "  · next 1  t  pending",
    "  · next 2  t  pending",
    "  ... and 9 more: 3 pending, 6 succeeded",
  ]);
  // The same holds once the run has ended.
  const over = next.map((one) => ({ ...one, state: "skipped" as const }));
  show(status([...done, bad, ...over], 1));
  expect(bare(terminal.lines).slice(1)).toEqual([
    "  ✓ done 0  t  succeeded",
    "  ✓ done 1  t  succeeded",
    "  ✓ done 2  t  succeeded",
    "  ✓ done 3  t  succeeded",
    "  ✗ bad     t  failed: no luck [2J",
    "  ... and 8 more: 2 succeeded, 6 skipped",
  ]);
});

test("the workflow view shows what a node waits for and until when, and marks nodes that no worker serves", () => {
  let out = "";
  const show = showOn({ write: (text) => (out += text) });
  const until = new Date(0);
  show(
    status([
      node("a", { kind: "waitFor", type: null, event: "approved", until }),
      node("b", { kind: "waitFor", type: null, event: "approved" }),
      node("c", { kind: "sleep", type: null, until }),
      node("d", { unserved: true }),
    ]),
  );
  expect(bare(out.split("\n")).slice(0, 4)).toEqual([
    "● a  waitFor  waits for approved until 1970-01-01T00:00:00.000Z",
    "● b  waitFor  waits for approved",
    "● c  sleep  sleeps until 1970-01-01T00:00:00.000Z",
    "● d  t  running, no worker serves it",
  ]);
});

test("the workflow view of an each shows a progress bar, its counts, its window and its waiting items", () => {
  let out = "";
  const show = showOn({ write: (text) => (out += text) });
  const counts = { total: 20, succeeded: 9, failed: 1, cancelled: 0 };
  show(status([node("sync", { kind: "each", counts, started: 3, waiting: 7, window: 3 })]));
  expect(bare([out])[0]).toContain("██████████░░░░░░░░░░ 10/20, 1 failed, 3 of 3 started, 7 waiting");
});

test("the workflow view prints only changes without a terminal", () => {
  const told: string[] = [];
  const show = showOn({ write: (text) => told.push(text) });
  show(status([node("a"), node("b")]));
  show(status([node("a", { state: "succeeded" }), node("b")], 0.5));
  show(status([node("a", { state: "succeeded" }), node("b")], 0.5));
  expect(bare(told)).toEqual([
    "● a  t  running\n● b  t  running\nrun 7 of nightly: running, 0 %\n",
    "✓ a  t  succeeded\nrun 7 of nightly: running, 50 %\n",
  ]);
});
