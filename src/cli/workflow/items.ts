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
      "Lists the items of an each in the order of the list, page by page: the index, the task, the state, and\n" +
      "why it failed or was cancelled. Also of what a handler has fanned out: list --task finds its run.",
    examples: ["items 12 sync --state failed", "items 12 sync --after 999 --limit 1000 --json"],
    json: '{"items":[{"index":3,"task":"40","state":"failed","error":{...}}],"after":3}; null: the last page',
  })
    .argument("<run>", "its id")
    .argument("<node>", "the each")
    .addOption(new Option("--state <state>", "items in this state").choices(TASK_STATES))
    .option("--after <index>", "goes on after this item")
    .option("--limit <n>", "at most so many", "20")
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
