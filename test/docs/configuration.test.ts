import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { connectionsOf } from "../../src/config/connections.js";
import { readConfigFile } from "../../src/config/file.js";
import type { Setting } from "../../src/config/kinds.js";
import { presetNames, presetPurposes } from "../../src/config/presets.js";
import { resolvePreset, resolveSection } from "../../src/config/resolve.js";
import { namesOf, sections, settingOf, snakeCase, type Section } from "../../src/config/table.js";

const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../../docs/operate/${name}`, import.meta.url));
const page = readFileSync(pathOf("configuration.md"), "utf8");

function rangeOf(setting: Setting): string {
  if (setting.kind === "integer")
    return `${setting.min} to ${setting.max}${setting.off ? ", or false" : ""}`;
  return setting.kind === "boolean" ? "true, false" : "";
}

/** The row of a setting that the page must show. */
function rowOf(section: Section, name: never): string {
  const setting = settingOf<Section>(section, name);
  const cells = [
    `\`${snakeCase(name)}\``,
    `\`${setting.env}\``,
    setting.default === null ? "" : String(setting.default),
    rangeOf(setting),
    setting.help,
  ];
  return `| ${cells.join(" | ")} |`;
}

test.each(sections)("the configuration page shows the current settings of [%s]", (section) => {
  const [, part = ""] = page.split(`### [${section}]\n`);
  const shown = part
    .split("\n### ")[0]!
    .split("\n")
    .filter((line) => line.startsWith("| `"));
  expect(shown).toEqual(namesOf(section).map((name) => rowOf(section, name)));
});

test.each(presetNames)(
  "the configuration page shows the numbers and the purpose of the preset %s",
  (preset) => {
    const { values } = resolveSection("worker", {}, { env: {}, file: null }, preset);
    const permits = preset === "cpu" ? "the cores, at most 4" : values.maxConcurrentTasks;
    const numbers = [values.claimLoops, permits, values.dbConnections].join(" | ");
    expect(page).toContain(`| \`${preset}\` | ${numbers} | ${presetPurposes[preset]} |`);
  },
);

test("the example config file is valid and its connections add up", async () => {
  const layers = { env: {}, file: await readConfigFile(pathOf("sluice.toml"), {}) };
  const preset = resolvePreset(undefined, layers).value;
  const { values } = resolveSection("worker", {}, layers, preset);
  const { apiConnections } = resolveSection("client", {}, layers).values;
  expect(values).toMatchObject({ maxConcurrentTasks: 50, claimLoops: 5, dbConnections: 35 });
  expect(connectionsOf({ ...values, apiConnections })).toMatchObject({ ok: true, handlers: 8 });
});
