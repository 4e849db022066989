import { Option, type Command } from "commander";
import type { Client } from "../../client/client.js";
import { TASK_STATES } from "../../core/state.js";
import type { TaskState } from "../../core/state.js";
import type { ItemPage, ItemSearch, RunItem } from "../../runs/items.js";
import { dim } from "../colors.js";
import { printResult } from "../print.js";
import { withClient, type Flags } from "../verb.js";
import { numberOf, verb } from "./common.js";
import { oneLine } from "./view.js";

interface ItemFlags extends Flags {
  readonly state?: TaskState;
  readonly after?: string;
  readonly limit: string;
}

/** `sluice workflow items`: lists the items of an each, with their tasks and errors. */
export function itemsCommand(): Command {
  return verb("items", {
    summary: "list the items of an each, with their errors",
    description:
      "Lists the items of an each in list order, page by page: the index, the task, the state, and why it\n" +
      "failed or was cancelled. This works for the fan-out of a handler too: list --task finds its run.",
    examples: ["items 12 sync --state failed", "items 12 sync --after 999 --limit 1000 --json"],
    json:
      '{"items":[{"index":3,"task":"40","state":"failed","error":{...}}],"after":3};' +
      ' "after" is null on the last page',
  })
    .argument("<run>", "the id of the run")
    .argument("<node>", "the name of the each")
    .addOption(new Option("--state <state>", "only items in this state").choices(TASK_STATES))
    .option("--after <index>", "start after this index")
    .option("--limit <n>", "how many to list", "20")
    .action(runItems);
}

async function runItems(id: string, node: string, flags: ItemFlags): Promise<void> {
  const { state, after } = flags;
  const search: ItemSearch = {
    limit: numberOf("--limit", flags.limit),
    ...(state === undefined ? {} : { state }),
    ...(after === undefined ? {} : { after: numberOf("--after", after) }),
  };
  const page = await withClient(flags, (client) => found(client, id, node, search));
  printResult(page, linesOf(page), flags.json ?? false);
}

/** The first page that is not empty: with a state, pages before the last may be empty. */
async function found(client: Client, id: string, node: string, search: ItemSearch): Promise<ItemPage> {
  let page = await client.run(id).items(node, search);
  while (page.items.length === 0 && page.after !== null)
    page = await client.run(id).items(node, { ...search, after: page.after });
  return page;
}

function linesOf({ items, after }: ItemPage): string[] {
  if (items.length === 0) return ["no items"];
  const more = after === null ? [] : [dim(`more: --after ${after}`)];
  return [...items.map(lineOf), ...more];
}

function lineOf({ index, task, state, error }: RunItem): string {
  const why = error === null ? "" : `  ${oneLine(error.message)}`;
  return `${String(index).padStart(6)}  ${dim(`task ${task}`)}  ${state.padEnd(error === null ? 0 : 9)}${why}`;
}
