import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { findGroups, percentOfGroups } from "../../../src/worker/pressure/cgroup.js";
import { Durations } from "../../../src/worker/pressure/durations.js";
import { LoopDelay } from "../../../src/worker/pressure/loop.js";
import { memoryReader } from "../../../src/worker/pressure/memory.js";
import { nextSignal, quietSignal } from "../../../src/worker/pressure/signal.js";
import { until } from "../../flow/scene.js";

const MB = 1024 * 1024;
const HOST = 1_000 * MB;

/** A file system with just these files. */
function files(of: Record<string, string | number>): string {
  const root = mkdtempSync(join(tmpdir(), "sluice-pressure-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries(of)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), `${text}\n`);
  }
  return root;
}

const V2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";
const V1 = [
  "33 31 0:30 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu",
  "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
].join("\n");

function percent(root: string): number | null {
  return percentOfGroups(findGroups(root), HOST);
}

describe("memory of a control group, version 2", () => {
  const own = "sys/fs/cgroup/app/worker";
  const base = {
    "proc/self/cgroup": "0::/app/worker",
    "proc/self/mountinfo": V2,
    [`${own}/memory.current`]: 150 * MB,
    [`${own}/memory.stat`]: `anon 100\nactive_file 5\ninactive_file ${50 * MB}`,
  };

  test("the share of a version 2 group excludes the cache that the kernel can drop", () => {
    expect(percent(files({ ...base, [`${own}/memory.max`]: 200 * MB }))).toBe(50);
  });

  test("a version 2 group has no limit if it says max or more than the host has", () => {
    expect(percent(files({ ...base, [`${own}/memory.max`]: "max" }))).toBeNull();
    expect(percent(files({ ...base, [`${own}/memory.max`]: 2 * HOST }))).toBeNull();
  });

  test("a version 2 group is bounded by its tightest ancestor", () => {
    const app = "sys/fs/cgroup/app";
    const above = { [`${app}/memory.max`]: 400 * MB, [`${app}/memory.current`]: 300 * MB };
    expect(percent(files({ ...base, ...above, [`${own}/memory.max`]: 200 * MB }))).toBe(75);
    expect(percent(files({ ...base, ...above, [`${own}/memory.max`]: "max" }))).toBe(75);
  });

  test("a version 2 group counts from memory.high if that is lower", () => {
    const high = { [`${own}/memory.max`]: 400 * MB, [`${own}/memory.high`]: 125 * MB };
    expect(percent(files({ ...base, ...high }))).toBe(80);
  });

  test("a version 2 group whose path is not mounted uses the mounted one", () => {
    const root = files({
      "proc/self/cgroup": "0::/kubepods/pod1/container1",
      "proc/self/mountinfo": V2.replace(" / /sys", " /kubepods/pod1/container1 /sys"),
      "sys/fs/cgroup/memory.max": 200 * MB,
      "sys/fs/cgroup/memory.current": 100 * MB,
    });
    expect(percent(root)).toBe(50);
  });

  test("a version 2 group follows a changed limit, and tolerates deleted files", () => {
    const root = files({ ...base, [`${own}/memory.max`]: 200 * MB });
    const groups = findGroups(root);
    writeFileSync(join(root, own, "memory.max"), String(100 * MB));
    expect(percentOfGroups(groups, HOST)).toBe(100);
    rmSync(join(root, "sys"), { recursive: true });
    expect(percentOfGroups(groups, HOST)).toBeNull();
  });
});

describe("memory of a control group, version 1", () => {
  const own = "sys/fs/cgroup/memory/app";
  const base = {
    "proc/self/cgroup": "5:cpu:/\n4:memory:/app\n0::/",
    "proc/self/mountinfo": V1,
    [`${own}/memory.usage_in_bytes`]: 150 * MB,
    [`${own}/memory.stat`]: `inactive_file 1\ntotal_inactive_file ${50 * MB}`,
  };

  test("the share of a version 1 group excludes the cache that the kernel can drop", () => {
    expect(percent(files({ ...base, [`${own}/memory.limit_in_bytes`]: 125 * MB }))).toBe(80);
  });

  test("a version 1 group has no limit if the number is the largest possible", () => {
    const unlimited = { [`${own}/memory.limit_in_bytes`]: "9223372036854771712" };
    expect(percent(files({ ...base, ...unlimited }))).toBeNull();
  });

  test("a version 1 group is bounded by its ancestor, beside a version 2 hierarchy without memory", () => {
    const root = files({
      ...base,
      "proc/self/mountinfo": `${V1}\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw`,
      "sys/fs/cgroup/memory/memory.limit_in_bytes": 500 * MB,
      "sys/fs/cgroup/memory/memory.usage_in_bytes": 450 * MB,
      [`${own}/memory.limit_in_bytes`]: 200 * MB,
    });
    expect(percent(root)).toBe(90);
  });
});

describe("memory of a process", () => {
  const meminfo = `MemTotal: 1024000 kB\nMemFree: 1 kB\nMemAvailable:  ${256 * 1024} kB`;
  const read = (of: Record<string, string | number>, heap = 10) =>
    memoryReader({ root: files(of), hostBytes: 1024 * MB, heapPercent: () => heap })();

  test.runIf(process.platform === "linux")("the memory of a process is the host's if no group has a limit", () => {
    expect(read({ "proc/meminfo": meminfo })).toEqual({ percent: 75, of: "host" });
  });

  test("the memory of a process is the group's if that has a limit, however full the host is", () => {
    const group = {
      "proc/self/cgroup": "0::/",
      "proc/self/mountinfo": V2,
      "sys/fs/cgroup/memory.max": 100 * MB,
      "sys/fs/cgroup/memory.current": 40 * MB,
    };
    expect(read({ ...group, "proc/meminfo": meminfo })).toEqual({ percent: 40, of: "cgroup" });
    expect(read(group, 90)).toEqual({ percent: 90, of: "heap" });
  });

  test("the memory of this process can be read", () => {
    const { percent: found } = memoryReader()();
    expect(found).toBeGreaterThan(0);
    expect(found).toBeLessThan(200);
  });
});

describe("the V8 heap", () => {
  test.each([
    { flags: ["--max-old-space-size=64"], mb: 64 },
    { flags: ["--max-old-space-size=256", "--max-semi-space-size=64"], mb: 256 },
    { flags: ["--max_semi_space_size=2", "--max-old-space-size=100"], mb: 100 },
  ])("the heap with $flags ends at $mb MB, although V8 reports a larger limit", ({ flags, mb }) => {
    const heap = new URL("../../../src/worker/pressure/heap.ts", import.meta.url).href;
    const script = `import(${JSON.stringify(heap)}).then((h) => console.log(h.heapLimitBytes()))`;
    const args = [...flags, "--import", import.meta.resolve("tsx"), "-e", script];
    const said = execFileSync(process.execPath, args, { encoding: "utf8", env: { PATH: "" } });
    expect(Number(said) / MB).toBe(mb);
  });
});

describe("durations of tasks", () => {
  const filled = (of: readonly number[], d = new Durations(0)): Durations => {
    for (const ms of of) d.add(ms);
    return d;
  };
  const many = (n: number, ms: number): number[] => Array.from({ length: n }, () => ms);

  test.each([0.1, 1, 33, 1_000, 30_000, 3_600_000])(
    "durations of %d ms are measured with an error of at most 5 %",
    (ms) => {
      const p99 = filled(many(100, ms)).p99Ms(1)!;
      expect(Math.abs(p99 / ms - 1)).toBeLessThan(0.05);
    },
  );

  test("the p99 is the duration that 1 % of the tasks exceed", () => {
    expect(filled([...many(99, 10), 5_000]).p99Ms(1)).toBeLessThan(11);
    expect(filled([...many(98, 10), 5_000, 5_000]).p99Ms(1)).toBeGreaterThan(4_500);
  });

  test("durations of fewer than ten tasks yield no p99", () => {
    expect(filled(many(9, 5_000)).p99Ms(1)).toBeNull();
    expect(filled(many(10, 5_000)).p99Ms(1)).not.toBeNull();
  });

  test("durations expire after a minute, and not before 50 seconds", () => {
    const d = filled(many(100, 5_000));
    expect(d.p99Ms(49_999)).toBeGreaterThan(4_500);
    filled(many(100, 10), d);
    expect(d.p99Ms(50_001)).toBeGreaterThan(4_500);
    expect(d.p99Ms(60_001)).toBeLessThan(11);
    // After a long silence nothing is left.
    expect(d.p99Ms(10_000_000)).toBeNull();
  });

  test("durations of any size are counted: zero, negative and weeks", () => {
    const d = filled([...many(10, 0), -1, Number.MAX_SAFE_INTEGER]);
    expect(d.p99Ms(1)).toBeGreaterThan(86_400_000);
  });
});

describe("the event loop's delay", () => {
  /** Reads as a worker does, with turns of the loop in between, until the answer is the wanted one. */
  async function untilRead(what: string, wanted: (ms: number) => boolean, turn: () => void) {
    const loop = new LoopDelay();
    onTestFinished(() => loop.stop());
    await until(what, () => {
      turn();
      return wanted(loop.readMs());
    });
  }
  const block = (ms: number): void => {
    const end = performance.now() + ms;
    while (performance.now() < end);
  };

  test("the event loop's delay is the time that handlers block it, also if every turn blocks", async () => {
    await untilRead(
      "a delay of 150 to 1000 ms",
      (ms) => ms > 150 && ms < 1_000,
      () => block(200),
    );
  });

  test("the event loop's delay is none in an idle process, without the timer's own interval", async () => {
    let seen = 0;
    await untilRead(
      "ten calm readings",
      (ms) => ms < 15 && ++seen === 10,
      () => {},
    );
  });
});

describe("a pressure signal", () => {
  const terms = { above: 80, below: 75, onAfter: 1, offAfter: 2 };
  const after = (values: (number | null)[], of = terms): boolean =>
    values.reduce((was, value) => nextSignal(was, value, of), quietSignal).on;

  test.each([
    { values: [80], on: false },
    { values: [81], on: true },
    // Between the thresholds nothing changes.
    { values: [77], on: false },
    { values: [81, 77, 77, 77, 77], on: true },
    { values: [81, 75, 75, 75], on: true },
    // It takes two calm samples in a row to be over.
    { values: [81, 74], on: true },
    { values: [81, 74, 74], on: false },
    { values: [81, 74, 77, 74], on: true },
    { values: [81, 74, 74, 77], on: false },
    { values: [81, 74, 74, 81], on: true },
    // Nothing to measure is calm.
    { values: [null], on: false },
    { values: [81, null, null], on: false },
  ])("a signal after the values $values is on: $on", ({ values, on }) => {
    expect(after(values)).toBe(on);
  });

  test("a signal that needs two samples does not turn on after one", () => {
    const patient = { ...terms, onAfter: 2 };
    expect(after([81, 10, 81], patient)).toBe(false);
    expect(after([81, 81], patient)).toBe(true);
  });
});
