import pc from "picocolors";
import { expect, test } from "vitest";
import { openScreen } from "../../examples/demo/screen.js";
import { picture, type Look } from "../../examples/demo/view.js";

const look: Look = {
  seconds: 3,
  tasks: { charge: 1800, mail: 1200 },
  tallies: [
    { worker: "worker-1", type: "charge", tenant: "t1", done: 900, running: 2 },
    { worker: "worker-2", type: "mail", tenant: null, done: 30, running: 0 },
  ],
  limits: [
    { name: "gateway", about: "shared by both types", used: 14, slots: 16 },
    { name: "tenant", about: "for each tenant", used: 3, slots: 4, keys: [3, 2, 1, 0] },
  ],
  members: [
    { name: "worker-1", pid: 11, alive: true },
    { name: "worker-2", pid: 12, alive: false },
  ],
};

test("the demo screen shows finished tasks, used slots of each limit and dead workers", () => {
  const happenings = [{ seconds: 2.5, text: "worker-2 was killed with kill -9" }];
  expect(picture(look, happenings, pc.createColors(false))).toEqual([
    "  charge    ━━━━━━━━━━━━━━──────────────      900 / 1,800  done",
    "  mail      ────────────────────────────       30 / 1,200  done",
    "",
    "  gateway   ■■■■■■■■■■■■■■□□                   14 / 16     shared by both types",
    "  tenant    3  2  1  0                          3 / 4      for each tenant",
    "",
    "  worker-1  pid 11             2 running      900 done",
    "  worker-2  pid 12             killed -9       30 done",
    "",
    "    2.5 s  worker-2 was killed with kill -9",
  ]);
});

/** The text that a screen writes to a terminal of this kind. */
function written(isTTY: boolean, rows: number, env: NodeJS.ProcessEnv): string {
  let text = "";
  const write = (chunk: string): boolean => ((text += chunk), true);
  const screen = openScreen({ isTTY, rows, write } as unknown as NodeJS.WriteStream, env);
  screen.look(look);
  screen.tell(3.1, "gateway was lowered");
  screen.look({ ...look, seconds: 3.2 });
  screen.close();
  return text;
}

const plain = [
  "  3.0 s  done: charge 900/1800, mail 30/1200; slots used: gateway 14/16, tenant 3/4",
  "  3.1 s  gateway was lowered",
  "",
].join("\n");

test.each([
  ["a file or a pipe", false, 40, {}],
  ["NO_COLOR", true, 40, { NO_COLOR: "1" }],
  ["CI", true, 40, { CI: "true" }],
  ["a terminal that cannot move its cursor", true, 40, { TERM: "dumb" }],
  ["a terminal too low for the picture", true, 20, {}],
] as const)("the demo prints plain lines, at most one a second besides events, for %s", (_, isTTY, rows, env) => {
  expect(written(isTTY, rows, env)).toBe(plain);
});

test("the demo screen redraws in place on a terminal and restores the cursor", () => {
  const text = written(true, 40, {});
  // The first picture has 9 lines, the event makes it 10.
  expect(text).toContain("\u001b[9A");
  expect(text).toContain("\u001b[10A");
  expect(text.startsWith("\u001b[?25l")).toBe(true);
  expect(text.endsWith("\u001b[?25h")).toBe(true);
});
