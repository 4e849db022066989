// npm run figures: measures every figure that docs/guarantees.md states.
import { writeFileSync } from "node:fs";
import { Command } from "commander";
import { faultyFigures } from "./faulty.js";
import type { Figure, Measured } from "./figure.js";
import { flowFigures } from "./flows.js";
import { groupFigures } from "./groups.js";
import { idleFigures } from "./idle.js";
import { heavyFigures } from "./large.js";
import { ringFigures } from "./rings.js";

const figures: readonly Figure[] = [
  ...faultyFigures,
  ...heavyFigures,
  ...flowFigures,
  ...idleFigures,
  ...ringFigures,
  ...groupFigures,
];

interface Row extends Measured {
  readonly name: string;
  readonly target: string;
}

const command = new Command("npm run figures --")
  .description(
    "Measures the figures that docs/guarantees.md states, one by one (about 17 minutes for all). " +
      "Exits with 1 if one is missed. Nothing else should run on the machine.",
  )
  .argument("[names...]", `which: ${figures.map(({ name }) => name).join(", ")}; default: all`)
  .option("--json", "print a JSON list of the figures as the last line of output")
  .option("--markdown <file>", "write the figures as a table")
  .exitOverride((e) => process.exit(e.exitCode === 0 ? 0 : 2))
  .parse();

const { json, markdown } = command.opts<{ json?: boolean; markdown?: string }>();
const names = command.args;
const unknown = names.filter((name) => !figures.some((figure) => figure.name === name));
if (unknown.length > 0) command.error(`there is no figure ${unknown.join(", ")}`);

const tell = (line: string): void => void process.stderr.write(`${line}\n`);
const rows: Row[] = [];
for (const figure of figures) {
  if (names.length > 0 && !names.includes(figure.name)) continue;
  const { name, target } = figure;
  tell(`\n## ${name}: ${target}`);
  const measured = await figure.measure(tell);
  rows.push({ name, target, ...measured });
  tell(`${measured.ok ? "reached" : "MISSED"}: ${measured.seen}`);
}
if (markdown !== undefined) writeFileSync(markdown, table(rows));
process.stdout.write(json === true ? `${JSON.stringify(rows)}\n` : `\n${table(rows)}`);
process.exitCode = rows.every(({ ok }) => ok) ? 0 : 1;

function table(of: readonly Row[]): string {
  const lines = of.map(
    ({ target, seen, ok, command: again }) => `| ${target} | ${ok ? "" : "**missed:** "}${seen} | \`${again}\` |`,
  );
  return ["| target | measured | command |", "|---|---|---|", ...lines, ""].join("\n");
}
