import type { About, Result } from "../result.js";
import { captionOf, panelsOf, type Bar, type Panel } from "./chart.js";

// A ground of its own: a picture in a page cannot know whether the page is light or dark.
const COLOURS = {
  ground: "#ffffff",
  edge: "#d0d7de",
  text: "#1f2328",
  faint: "#59636e",
  sluice: "#0969da",
  peer: "#afb8c1",
} as const;

const FONT = "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif";
const WIDTH = 960;
const MARGIN = 24;
const GAP = 40;
const PANEL = (WIDTH - 2 * MARGIN - GAP) / 2;
const LABELS_MAX = 184;
const LABEL_GAP = 8;
const TEXT_GAP = 6;
const ROW = 20;
const BAR = 12;
const HEAD = 96;
const ABOUT_LINES_MAX = 2;
const ABOUT_LINE = 15;

/** A chart of the main workloads; null if no peer was measured in any of them. */
export function svgOf(results: readonly Result[], about: About): string | null {
  const panels = panelsOf(results);
  if (panels.length === 0) return null;
  const labels = labelsOf(panels);
  const parts: string[] = [];
  let y = HEAD;
  for (let i = 0; i < panels.length; i += 2) {
    const pair = panels.slice(i, i + 2);
    parts.push(...pair.map((p, side) => drawPanel(p, { x: MARGIN + side * (PANEL + GAP), y, labels })));
    y += Math.max(...pair.map(heightOf)) + 26;
  }
  return document(y, [drawHead(about), ...parts].join("\n"));
}

function document(height: number, content: string): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" font-family="${FONT}" font-size="12" fill="${COLOURS.text}">
<title>Sluice and its peers</title>
<rect x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8" fill="${COLOURS.ground}" stroke="${COLOURS.edge}"/>
${content}
</svg>
`;
}

function drawHead(about: About): string {
  const quick = about.quick ? " (a quick run, which proves nothing)" : "";
  return [
    text(MARGIN, 34, `Sluice and its peers${quick}`, 'font-size="17" font-weight="600"'),
    text(MARGIN, 54, fitted(captionOf(about), WIDTH - 2 * MARGIN), `fill="${COLOURS.faint}"`),
    drawLegend(about.repetitions),
  ].join("\n");
}

function drawLegend(repetitions: number): string {
  const y = 76;
  const entries: [Bar["kind"] | null, string][] = [
    ["sluice", "Sluice"],
    ["peer", "a peer, in its best configuration"],
    ["limit", "pure SQL: our statements in a bare loop"],
    [null, `min to max of ${repetitions}`],
  ];
  let x = MARGIN;
  return entries
    .map(([kind, name]) => {
      const sign = kind === null ? whisker(x, x + 18, y - 4) : rect(kind, { x, y: y - 10, width: 18 });
      const entry = `${sign}\n${text(x + 25, y, name, `fill="${COLOURS.faint}"`)}`;
      x += 25 + widthOf(name) + 24;
      return entry;
    })
    .join("\n");
}

function aboutLines(panel: Panel): string[] {
  return wrapped(panel.about, PANEL, ABOUT_LINES_MAX);
}

function heightOf(panel: Panel): number {
  return 26 + aboutLines(panel).length * ABOUT_LINE + panel.bars.length * ROW;
}

/** The same room for labels in all panels, so that their bars stand below each other. */
function labelsOf(panels: readonly Panel[]): number {
  const widths = panels.flatMap(({ bars }) => bars.map(({ label, kind }) => widthOf(label, kind === "sluice")));
  return Math.min(LABELS_MAX, Math.max(...widths));
}

function drawPanel(panel: Panel, at: { x: number; y: number; labels: number }): string {
  const { x, y, labels } = at;
  const lines = aboutLines(panel);
  const faint = `fill="${COLOURS.faint}"`;
  const top = y + 26 + lines.length * ABOUT_LINE;
  const scale = scaleOf(panel.bars, PANEL - labels - LABEL_GAP);
  return [
    text(x, y + 14, panel.title, 'font-size="14" font-weight="600"'),
    text(x + PANEL, y + 14, panel.hint, `${faint} text-anchor="end"`),
    ...lines.map((line, i) => text(x, y + 31 + i * ABOUT_LINE, line, faint)),
    ...panel.bars.map((bar, i) => drawBar(bar, { x: x + labels, y: top + i * ROW, labels, scale })),
  ].join("\n");
}

/** Pixels for one of the unit: as much as lets every text stand behind its bar. */
function scaleOf(bars: readonly Bar[], room: number): number {
  const scales = bars.flatMap(({ extent, text, kind }) =>
    extent === null || extent.max === 0 ? [] : [(room - widthOf(text, kind === "sluice") - TEXT_GAP) / extent.max],
  );
  return scales.length === 0 ? 0 : Math.max(0, Math.min(...scales));
}

/** x: where its label ends. */
function drawBar(bar: Bar, { x, y, labels, scale }: { x: number; y: number; labels: number; scale: number }): string {
  const { extent, kind } = bar;
  const middle = y + ROW / 2;
  const from = x + LABEL_GAP;
  const weight = kind === "sluice" ? 'font-weight="600"' : "";
  const name = fitted(bar.label, labels, kind === "sluice");
  const label = text(x, middle + 4, name, `text-anchor="end" ${weight}`);
  if (extent === null) {
    const style = `fill="${COLOURS.faint}" font-style="italic"`;
    return `${label}\n${text(from, middle + 4, bar.text, style)}`;
  }
  const to = (n: number): number => from + n * scale;
  const width = Math.max(1, to(extent.value) - from);
  return [
    label,
    rect(kind, { x: from, y: middle - BAR / 2, width }),
    ...(extent.min === extent.max ? [] : [whisker(to(extent.min), to(extent.max), middle)]),
    text(Math.max(to(extent.max), from + width) + TEXT_GAP, middle + 4, bar.text, weight),
  ].join("\n");
}

function rect(kind: Bar["kind"], at: { x: number; y: number; width: number }): string {
  // Pure SQL is no competitor but a bound: an outline.
  const inset = kind === "limit" ? 0.5 : 0;
  const paint =
    kind === "limit" ? `fill="none" stroke="${COLOURS.faint}" stroke-dasharray="3 2"` : `fill="${COLOURS[kind]}"`;
  const [x, y] = [at.x + inset, at.y + inset];
  const [width, height] = [Math.max(0.5, at.width - 2 * inset), BAR - 2 * inset];
  return `<rect x="${px(x)}" y="${px(y)}" width="${px(width)}" height="${px(height)}" rx="1.5" ${paint}/>`;
}

function whisker(from: number, to: number, y: number): string {
  const [a, b] = [px(from), px(to)];
  return `<path d="M${a} ${y}H${b}M${a} ${y - 3}V${y + 3}M${b} ${y - 3}V${y + 3}" stroke="${COLOURS.text}" fill="none"/>`;
}

function text(x: number, y: number, content: string, more = ""): string {
  return `<text x="${px(x)}" y="${px(y)}" ${more}>${escaped(content)}</text>`.replace(/ *>/, ">");
}

function px(n: number): number {
  return Math.round(n * 10) / 10;
}

/** Of a text of 12 pixels, a little more than it takes in the widest of the fonts. */
function widthOf(content: string, bold = false): number {
  return content.length * (bold ? 7.4 : 6.7);
}

function fitted(content: string, width: number, bold = false): string {
  const most = Math.floor(width / widthOf("x", bold));
  return content.length <= most ? content : `${content.slice(0, most - 1).trimEnd()}…`;
}

/** Broken between words; the last line is cut if there is more. */
function wrapped(content: string, width: number, linesMax: number): string[] {
  const lines: string[] = [];
  for (const word of content.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && (widthOf(`${last} ${word}`) <= width || lines.length === linesMax))
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines.map((line) => fitted(line, width));
}

function escaped(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
