import { expect, test } from "vitest";
import { exportsOf, importsOf } from "./modules.js";
import { filesBelow, partsOf, textOf } from "./source.js";

// The rooms (folders of src) from top to bottom: a room imports from itself and from rooms above it.
const rooms = [
  "core",
  "config",
  "trace",
  "tx",
  "metrics",
  "plan",
  "postgres",
  "s3",
  "embedded",
  "limits",
  "explain",
  "operate",
  "workflow",
  "tasks",
  "schedules",
  "runs",
  "client",
  "keeper",
  "worker",
  "control",
  "cli",
  "testing",
];
// Files outside the rooms; they may import from all of them.
const doors = ["src/index.ts", "src/client.ts", "src/sluice.ts"];
const linesMax = 400;
const sources = filesBelow("src", ".ts");

const roomOf = (path: string): string => path.split("/")[1] ?? "";

test("every file of src belongs to a listed folder", () => {
  const homeless = sources.filter(
    (path) => !doors.includes(path) && !(path.split("/").length > 2 && rooms.includes(roomOf(path))),
  );
  expect(homeless, `rooms are ${rooms.join(", ")}`).toEqual([]);
});

test("a folder of src imports only from folders above it in the list", () => {
  const wrong = sources
    .filter((path) => !doors.includes(path))
    .flatMap((path) =>
      importsOf(path)
        .filter(({ from }) => from.startsWith("src/"))
        .filter(({ from }) => !(rooms.indexOf(roomOf(from)) <= rooms.indexOf(roomOf(path))))
        .map(({ from }) => `${path} imports ${from}`),
    );
  expect(wrong, `from top to bottom: ${rooms.join(", ")}`).toEqual([]);
});

test("src imports nothing from tests, benchmarks or examples, and only files that exist", () => {
  const wrong = sources.flatMap((path) =>
    importsOf(path)
      .filter(({ from }) => from.endsWith(".ts") && !sources.includes(from))
      .map(({ from }) => `${path} imports ${from}`),
  );
  expect(wrong).toEqual([]);
});

test("core imports nothing from outside, except types of Standard Schema", () => {
  const wrong = sources
    .filter((path) => roomOf(path) === "core")
    .flatMap((path) =>
      importsOf(path)
        .filter(({ from }) => !from.startsWith("src/core/"))
        .filter(({ from, typeOnly }) => !(from === "@standard-schema/spec" && typeOnly))
        .map(({ from }) => `${path} imports ${from}`),
    );
  expect(wrong).toEqual([]);
});

test(`no file of src has more than ${linesMax} lines`, () => {
  const long = sources
    .map((path) => ({ path, lines: textOf(path).trimEnd().split("\n").length }))
    .filter(({ lines }) => lines > linesMax)
    .map(({ path, lines }) => `${path} has ${lines} lines`);
  expect(long).toEqual([]);
});

test("every export is imported by another file of src or by a test", () => {
  const users = ["src", "test", "fault", "bench", "examples"].flatMap((folder) => filesBelow(folder, ".ts"));
  const imports = users.flatMap((path) => importsOf(path));
  const isUsed = (path: string, name: string): boolean =>
    imports.some(({ from, names }) => from === path && (names === undefined || names.includes(name)));
  const dead = sources
    // Exports of an entry point are for users, so a re-export there counts as a use.
    .filter((path) => !path.endsWith("/index.ts"))
    .flatMap((path) =>
      exportsOf(path)
        .filter((name) => !isUsed(path, name))
        .map((name) => `${path} exports ${name}, which nobody imports`),
    );
  expect(dead).toEqual([]);
});

// A statement, not a sentence that happens to begin with "update".
const statement =
  /^\s*(select\s+(\d|[\w.]+\s*\(|[\s\S]*\bfrom\s)|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s|with\s+(recursive\s+)?\w+\s*(\([^)]*\)\s*)?as\s|(create|alter|drop)\s+(table|index|schema|function|type)\s)/i;

test("SQL occurs only in src/postgres", () => {
  const stray = sources
    .filter((path) => roomOf(path) !== "postgres")
    .flatMap((path) =>
      partsOf(textOf(path))
        .strings.filter((text) => statement.test(text))
        .map((text) => `${path}: ${text.trim().slice(0, 60)}`),
    );
  expect(stray).toEqual([]);
});

const columnsMax = 120;
const functionLinesMax = 70;
// One statement, whose rows go from part to part with lists that arrays between statements could not hold.
const longFunctions = ["src/postgres/functions/settle/settle_others.sql"];
const sqlFiles = ["functions", "migrations"].flatMap((folder) => filesBelow(`src/postgres/${folder}`, ".sql"));

test(`no line of a SQL file has more than ${columnsMax} columns, except comments that name a guard`, () => {
  const wide = sqlFiles.flatMap((path) =>
    textOf(path)
      .split("\n")
      .flatMap((line, at) =>
        line.length > columnsMax && !line.includes("-- guard: ")
          ? [`${path}:${at + 1} has ${line.length} columns`]
          : [],
      ),
  );
  expect(wide).toEqual([]);
});

test(`no SQL function has more than ${functionLinesMax} lines`, () => {
  const short = sqlFiles.filter((path) => !longFunctions.includes(path));
  const long = short.flatMap((path) =>
    [...textOf(path).matchAll(/^create [^;]*?\$\$.*?\$\$;/gms)]
      .map(([text]) => text.split("\n").length)
      .filter((lines) => lines > functionLinesMax)
      .map((lines) => `${path} has a function of ${lines} lines`),
  );
  expect(long).toEqual([]);
});

/** Guards in comments; a long one may go on in the comment lines below. */
function guardsOf(path: string): string[] {
  const lines = textOf(path).split("\n");
  return lines.flatMap((line, at) => {
    if (!/(--|\/\/|\*)\s*guard: /.test(line)) return [];
    const rest = lines.slice(at + 1, at + 3).map((next) => /^\s*(?:--|\/\/|\*)(.*)/.exec(next)?.[1] ?? "");
    return [[line.slice(line.indexOf("guard: ")), ...rest].join(" ").replaceAll(/\s+/g, " ")];
  });
}

function brokenGuard(guard: string): string | undefined {
  const [, file, name] = /^guard: .+? -> (\S+\.ts): "([^"]+)"/.exec(guard) ?? [];
  if (file === undefined || name === undefined) return 'wants: guard: name -> file: "test"';
  if (!filesBelow("test", ".ts").includes(file)) return `${file} does not exist`;
  return partsOf(textOf(file)).strings.includes(name) ? undefined : `${file} has no test "${name}"`;
}

test("every guard comment names a test that exists", () => {
  const broken = [...sources, ...filesBelow("src", ".sql")].flatMap((path) =>
    guardsOf(path).flatMap((guard) => {
      const reason = brokenGuard(guard);
      return reason === undefined ? [] : [`${path}: ${reason} (${guard.slice(0, 80)})`];
    }),
  );
  expect(broken).toEqual([]);
});

// Assembled here so that this file does not match itself.
const machines = ["work", "farm", "home/[^/\\s]+", "Users/[^/\\s]+"];
const machinePath = new RegExp(`(?:^|[^\\w.])/(?:${machines.join("|")})/`);

test("no file names a path of a developer's machine", () => {
  const found = filesBelow("").flatMap((path) =>
    textOf(path)
      .split("\n")
      .flatMap((line, at) => (machinePath.test(line) ? [`${path}:${at + 1}: ${line.trim().slice(0, 100)}`] : [])),
  );
  expect(found).toEqual([]);
});

test("the lock file records no download addresses", () => {
  expect(textOf("package-lock.json")).not.toMatch(/"resolved":\s*"https?:/);
});
