import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { docsPages, pageText } from "../support/markdown.js";

const root = new URL("../../", import.meta.url);
const pages = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", ...docsPages()];

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(page: string): string[] {
  const headings = pageText(page).matchAll(/^#+ (.+)$/gm);
  return [...headings].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

/** The broken links of a page into this repository. */
function deadLinks(page: string): string[] {
  const text = pageText(page).replaceAll(/```[\s\S]*?```/g, "");
  const links = [...text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, link]) => link!);
  return links.filter((link) => {
    const target = new URL(link, new URL(page, root));
    const anchor = target.hash.slice(1);
    target.hash = "";
    if (!existsSync(target)) return true;
    const path = fileURLToPath(target).slice(fileURLToPath(root).length);
    return anchor !== "" && path.endsWith(".md") && !anchorsOf(path).includes(anchor);
  });
}

test.each(pages)("every link of %s to a file or heading of this repository resolves", (page) => {
  expect(deadLinks(page)).toEqual([]);
});

test("the index of the documentation links to every page", () => {
  const index = pageText("docs/README.md");
  const others = pages.filter((page) => page.startsWith("docs/") && page !== "docs/README.md");
  const missing = others.filter((page) => !index.includes(`(${page.slice("docs/".length)})`));
  expect(missing).toEqual([]);
});
