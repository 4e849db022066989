// The samples of a run as small multiples over one time axis, in plain SVG.
import type { Options } from "./options.js";
import type { Played } from "./run.js";
import type { Sample } from "./samples.js";

interface Series {
  readonly name: string;
  readonly color: string;
  readonly of: (sample: Sample) => number | null;
}

interface Panel {
  readonly title: string;
  readonly unit: string;
  readonly series: readonly Series[];
}

const PANELS: readonly Panel[] = [
  {
    title: "Handlers ended",
    unit: "per second",
    series: [{ name: "ended", color: "#1f6feb", of: (s) => s.endedPerSecond }],
  },
  {
    title: "Tasks in flight",
    unit: "tasks",
    series: [{ name: "in flight", color: "#1a7f37", of: (s) => s.inFlight }],
  },
  {
    title: "Duration of a step, measured at the worker",
    unit: "ms",
    series: [
      { name: "p50", color: "#8250df", of: (s) => s.stepP50Ms },
      { name: "p99", color: "#cf222e", of: (s) => s.stepP99Ms },
    ],
  },
  {
    title: "Dead tuples of the hot tables",
    unit: "tuples",
    series: [{ name: "dead", color: "#9a6700", of: (s) => s.deadTuples }],
  },
  {
    title: "Memory of workers (RSS)",
    unit: "MB",
    series: [
      { name: "all", color: "#57606a", of: (s) => s.rssMb },
      { name: "largest", color: "#bf3989", of: (s) => s.rssMaxMb },
    ],
  },
];

const WIDTH = 1_000;
const LEFT = 110;
const RIGHT = 20;
const TOP = 50;
const PANEL_HEIGHT = 110;
const PANEL_GAP = 50;
const LANE_HEIGHT = 9;
const TICKS = 4;

export function plot(played: Played, options: Options): string {
  const { samples, turns, begunMs } = played;
  const seconds = Math.max(1, samples.at(-1)?.second ?? 1);
  const x = (second: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * second) / seconds;
  const names = [...new Set(turns.map(({ name }) => name))].toSorted();
  const lanesTop = TOP + PANELS.length * (PANEL_HEIGHT + PANEL_GAP);
  const height = lanesTop + names.length * LANE_HEIGHT + 60;
  const bars = turns.map(({ name, fromMs, toMs }) => {
    const at = [(fromMs - begunMs) / 1_000, (toMs - begunMs) / 1_000].map(x) as [number, number];
    const y = lanesTop + names.indexOf(name) * LANE_HEIGHT;
    const width = Math.max(1.5, at[1] - at[0]).toFixed(1);
    return `<rect x="${at[0].toFixed(1)}" y="${y}" width="${width}" height="6" fill="#cf222e" opacity="0.6"/>`;
  });
  const labels = names.map((name, i) =>
    text(LEFT - 4, lanesTop + i * LANE_HEIGHT + 6, name, 'text-anchor="end" font-size="7"'),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="11" fill="#24292f">`,
    `<rect width="${WIDTH}" height="${height}" fill="white"/>`,
    text(LEFT, 24, `seed ${options.seed}, ${played.produced} tasks`, 'font-size="15"'),
    ...PANELS.flatMap((panel, i) => panelOf(panel, samples, TOP + i * (PANEL_HEIGHT + PANEL_GAP), x)),
    text(LEFT, lanesTop - 8, "Faults", 'font-weight="bold"'),
    ...labels,
    ...bars,
    ...timeAxis(seconds, lanesTop + names.length * LANE_HEIGHT + 14, x),
    "</svg>",
    "",
  ].join("\n");
}

function panelOf(
  { title, unit, series }: Panel,
  samples: readonly Sample[],
  top: number,
  x: (second: number) => number,
): string[] {
  const values = samples.flatMap((s) => series.map(({ of }) => of(s) ?? 0));
  const most = niceAbove(Math.max(1, ...values));
  const bottom = top + 20 + PANEL_HEIGHT;
  const y = (value: number): number => bottom - (PANEL_HEIGHT * value) / most;
  const grid = Array.from({ length: TICKS + 1 }, (_, i) => (most * i) / TICKS).flatMap((value) => [
    `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value)}" y2="${y(value)}" stroke="#d0d7de"/>`,
    text(LEFT - 6, y(value) + 4, String(value), 'text-anchor="end"'),
  ]);
  const legend = series.map(({ name, color }, i) =>
    text(WIDTH - RIGHT - 70 * (series.length - i), top + 12, name, `fill="${color}"`),
  );
  const lines = series.map(({ color, of }) => {
    const points = samples.flatMap((s) => {
      const value = of(s);
      return value === null ? [] : [`${x(s.second).toFixed(1)},${y(value).toFixed(1)}`];
    });
    return `<polyline points="${points.join(" ")}" fill="none" stroke="${color}" stroke-width="1.5"/>`;
  });
  return [text(LEFT, top + 12, `${title} (${unit})`, 'font-weight="bold"'), ...grid, ...legend, ...lines];
}

function timeAxis(seconds: number, top: number, x: (second: number) => number): string[] {
  const every = niceAbove(seconds / 10);
  const marks = Array.from({ length: Math.floor(seconds / every) + 1 }, (_, i) => i * every);
  return [
    ...marks.map((second) => text(x(second), top, String(second), 'text-anchor="middle"')),
    text(LEFT, top + 18, "seconds since the first worker was ready"),
  ];
}

/** The next of 1, 2, 5, 10, 20, ... that is not below. */
function niceAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= value)!;
}

function text(x: number, y: number, words: string, attributes = ""): string {
  const safe = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x.toFixed(1)}" y="${y}" ${attributes}>${safe}</text>`;
}
