import { execFileSync } from "node:child_process";
import { beforeAll, expect, test } from "vitest";
import { sluice } from "./run.js";

let script: string;
beforeAll(async () => {
  script = (await sluice(["completion", "bash"])).out;
});

/** What bash would offer for this line; the last word is the one being typed. */
function offered(...typed: string[]): string[] {
  const words = ["sluice", ...typed].map((word) => `'${word}'`).join(" ");
  const call = `COMP_WORDS=(${words}); COMP_CWORD=${typed.length}; _sluice; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const out = execFileSync("bash", ["--norc", "-c", `${script}\n${call}`], { encoding: "utf8" });
  return out.split("\n").filter((word) => word !== "");
}

test("sluice completion bash registers a function for sluice", () => {
  const out = execFileSync("bash", ["--norc", "-c", `${script}\ncomplete -p sluice`], { encoding: "utf8" });
  expect(out).toBe("complete -o default -F _sluice sluice\n");
});

test("sluice completion bash completes commands, verbs, options and their values", () => {
  expect(offered("")).toEqual(expect.arrayContaining(["migrate", "tasks", "queues", "completion", "--version"]));
  expect(offered("work")).toEqual(["workflow", "workers"]);
  expect(offered("limits", "")).toEqual(expect.arrayContaining(["list", "show", "set", "lift", "reset"]));
  expect(offered("limits", "set", "mail", "--")).toEqual(
    expect.arrayContaining(["--total", "--per-key", "--json", "--url", "--help"]),
  );
  expect(offered("limits", "set", "mail", "--t")).toEqual(["--total"]);
  expect(offered("workflow", "graph", "12", "--format", "")).toEqual(["mermaid", "svg"]);
  expect(offered("completion", "z")).toEqual(["zsh"]);
  expect(offered("tasks", "cancel", "--y")).toEqual(["--yes"]);
});

test("sluice completion bash does not take the value of an option for a command", () => {
  expect(offered("limits", "list", "--prefix", "set", "--a")).toEqual(["--after"]);
  // The value of an option without known values is left to the shell.
  expect(offered("limits", "list", "--prefix", "")).toEqual([]);
});

test("sluice completion zsh prints a script with every command, and other shells are refused", async () => {
  const [zsh, fish] = await Promise.all([sluice(["completion", "zsh"]), sluice(["completion", "fish"])]);
  expect(zsh.out).toMatch(/^#compdef sluice\n/);
  expect(zsh.out).toContain("'tasks:show, cancel, retry and unblock tasks'");
  expect(zsh.out).toContain(`("sluice workflow graph --format") found=('mermaid' 'svg') ;;`);
  // The words are quoted so that a shell can read them; bash reads arrays and strings in the same way.
  const arrays = [...zsh.out.matchAll(/found=\(.*\) ;;/g)].map(([text]) => text.slice(0, -3));
  expect(arrays.length).toBeGreaterThan(20);
  execFileSync("bash", ["-n", "-c", arrays.join("\n")]);
  expect([fish.code, fish.err]).toEqual([2, expect.stringContaining("Allowed choices are bash, zsh")]);
});
