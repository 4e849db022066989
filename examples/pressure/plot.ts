/** A quarter of a second of a worker's life. */
export interface Sample {
  readonly second: number;
  readonly rssMb: number;
  readonly inFlight: number;
  /** Tasks per claim, on average; null if there was none. */
  readonly claimSize: number | null;
  readonly state: "normal" | "reduced" | "stopped";
  readonly reasons: readonly string[];
}

interface Panel {
  readonly title: string;
  readonly color: string;
  readonly of: (sample: Sample) => number | null;
  /** A line that must not be crossed. */
  readonly bound?: number;
}

const WIDTH = 900;
const LEFT = 60;
const RIGHT = 20;
const PANEL_HEIGHT = 130;
const PANEL_GAP = 46;
const TOP = 56;
const TICKS = 4;
const SHADES = { normal: null, reduced: "#fff1c2", stopped: "#dbeafe" } as const;

/** The samples as small multiples over one time axis, in plain SVG. */
export function plot(samples: readonly Sample[], title: string, limitMb: number): string {
  const panels: readonly Panel[] = [
    {
      title: "Memory of the worker's process (RSS, MB)",
      color: "#bf3989",
      of: (s) => s.rssMb,
      bound: limitMb,
    },
    { title: "Tasks in flight", color: "#1a7f37", of: (s) => s.inFlight },
    { title: "Claim size (tasks per claim)", color: "#1f6feb", of: (s) => s.claimSize },
  ];
  const seconds = Math.max(1, samples.at(-1)?.second ?? 1);
  const x = (second: number): number => LEFT + ((WIDTH - LEFT - RIGHT) * second) / seconds;
  const bottom = TOP + panels.length * (PANEL_HEIGHT + PANEL_GAP);
  const height = bottom + 30;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="11" fill="#24292f">`,
    `<rect width="${WIDTH}" height="${height}" fill="white"/>`,
    text(LEFT, 20, title, 'font-size="14" font-weight="bold"'),
    ...legend(),
    ...panels.flatMap((panel, i) => draw(panel, samples, TOP + i * (PANEL_HEIGHT + PANEL_GAP), x)),
    ...timeAxis(seconds, bottom - 4, x),
    "</svg>",
    "",
  ].join("\n");
}

function legend(): string[] {
  const words = {
    reduced: "claims reduced",
    stopped: "permits or bytes in use: only what ends is replaced",
  };
  return (["reduced", "stopped"] as const).flatMap((state, i) => [
    `<rect x="${LEFT + i * 130}" y="30" width="12" height="12" fill="${SHADES[state]}" stroke="#d0d7de"/>`,
    text(LEFT + 18 + i * 130, 40, words[state]),
  ]);
}

function draw(
  panel: Panel,
  samples: readonly Sample[],
  top: number,
  x: (second: number) => number,
): string[] {
  const { title, color, of, bound } = panel;
  const most = niceAbove(Math.max(1, bound ?? 0, ...samples.map((s) => of(s) ?? 0)));
  const [ceiling, floor] = [top + 20, top + 20 + PANEL_HEIGHT];
  const y = (value: number): number => floor - (PANEL_HEIGHT * value) / most;
  const rule = (value: number, style: string): string =>
    `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value).toFixed(1)}" y2="${y(value).toFixed(1)}" ${style}/>`;
  const grid = Array.from({ length: TICKS + 1 }, (_, i) => (most * i) / TICKS).flatMap((value) => [
    rule(value, 'stroke="#d0d7de"'),
    text(LEFT - 6, y(value) + 4, String(value), 'text-anchor="end"'),
  ]);
  const limit =
    bound === undefined
      ? []
      : [
          rule(bound, 'stroke="#cf222e" stroke-dasharray="5 3"'),
          text(
            WIDTH - RIGHT - 4,
            y(bound) - 4,
            `limit ${bound} MB`,
            'text-anchor="end" fill="#cf222e"',
          ),
        ];
  return [
    text(LEFT, top + 12, title, 'font-weight="bold"'),
    ...shades(samples, ceiling, x),
    ...grid,
    ...limit,
    ...lines(samples, (s) => of(s), x, y).map(
      (points) => `<polyline points="${points}" fill="none" stroke="${color}" stroke-width="1.5"/>`,
    ),
  ];
}

/** Where claims were reduced or stopped: one band per stretch of time. */
function shades(samples: readonly Sample[], top: number, x: (second: number) => number): string[] {
  return samples.flatMap(({ second, state }, i) => {
    const shade = SHADES[state];
    const next = samples[i + 1];
    if (shade === null || next === undefined) return [];
    // A little wider, or hairlines show between the bands.
    const width = (x(next.second) - x(second) + 0.4).toFixed(1);
    return [
      `<rect x="${x(second).toFixed(1)}" y="${top}" width="${width}" height="${PANEL_HEIGHT}" fill="${shade}"/>`,
    ];
  });
}

/** A line for each stretch of samples that have a value. */
function lines(
  samples: readonly Sample[],
  of: (sample: Sample) => number | null,
  x: (second: number) => number,
  y: (value: number) => number,
): string[] {
  const stretches: string[][] = [[]];
  for (const sample of samples) {
    const value = of(sample);
    if (value === null) stretches.push([]);
    else stretches.at(-1)!.push(`${x(sample.second).toFixed(1)},${y(value).toFixed(1)}`);
  }
  return stretches.filter((points) => points.length > 0).map((points) => points.join(" "));
}

function timeAxis(seconds: number, top: number, x: (second: number) => number): string[] {
  const every = niceAbove(seconds / 10);
  const marks = Array.from({ length: Math.floor(seconds / every) + 1 }, (_, i) => i * every);
  return [
    ...marks.map((second) => text(x(second), top, String(second), 'text-anchor="middle"')),
    text(LEFT, top + 18, "seconds since the tasks arrived"),
  ];
}

/** The next round number that is not below. */
function niceAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((n) => n * power).find((n) => n >= value)!;
}

function text(x: number, y: number, words: string, attributes = ""): string {
  const safe = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${attributes}>${safe}</text>`;
}
