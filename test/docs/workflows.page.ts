import { z } from "zod";
import { task, type, workflow, type Sluice } from "../../src/index.js";

const listAccounts = task("list-accounts", {
  input: z.object({ region: z.string() }),
  output: type<{ accounts: { id: string; plan: string }[] }>(),
});
const syncAccount = task("sync-account", {
  input: z.object({ account: z.string() }),
  output: type<{ rows: number }>(),
});
const writeReport = task("write-report", {
  input: z.object({ rows: z.array(z.object({ rows: z.number() }).nullable()), failed: z.number() }),
  output: type<{ url: string }>(),
});

export const nightly = workflow(
  "nightly",
  { input: z.object({ region: z.string() }) },
  (w, input) => {
    const list = w.task("list", listAccounts, { region: input.region });
    const sync = w.each(
      "sync",
      syncAccount,
      list.accounts,
      (account) => ({ account: account.id }),
      {
        window: 3,
        onError: "collect",
      },
    );
    const report = w.task("report", writeReport, {
      rows: sync.results,
      failed: sync.counts.failed,
    });
    return { url: report.url, failed: sync.counts.failed };
  },
);

const order = z.object({ id: z.string(), total: z.number(), parcels: z.array(z.string()) });
const reserve = task("reserve", {
  input: z.object({ order: z.string() }),
  output: type<{ id: string }>(),
});
const charge = task("charge", {
  input: z.object({ order: z.string(), approvedBy: z.string().nullable() }),
  output: type<{ receipt: string }>(),
});
const release = task("release", {
  input: z.object({ reservation: z.string(), why: z.string().nullable() }),
});
const pack = task("pack", { input: z.object({ parcel: z.string(), index: z.number() }) });
const ship = task("ship", { input: z.object({ order: z.string() }) });

export const fulfil = workflow("fulfil", { input: order }, (w, input) => {
  const reserved = w.task("reserve", reserve, { order: input.id });
  const large = w.when("large", input.total, { above: 1_000 }, (b) => {
    const approval = b.waitFor("approval", "approved", {
      timeoutMs: 86_400_000,
      schema: type<{ by: string }>(),
    });
    b.onFailure(approval, (f) => {
      f.task("give up", release, { reservation: reserved.id, why: "nobody approved" });
    });
    return approval;
  });
  const paid = w.task(
    "charge",
    charge,
    { order: input.id, approvedBy: large.yes.by },
    { after: [reserved, large] },
  );
  w.onFailure(
    paid,
    (f, failure) => {
      f.task("release", release, { reservation: reserved.id, why: failure.message });
    },
    { recover: true },
  );
  w.sequence("send", (s) => {
    s.each("pack", pack, input.parcels, (parcel, index) => ({ parcel, index }), {
      window: 2,
      after: [paid],
    });
    s.sleep("pause", 60_000);
    s.task("ship", ship, { order: input.id });
  });
});

const book = task("book", {
  input: z.object({ leg: z.string() }),
  output: type<{ booking: string }>(),
});
const unbook = task("unbook", {
  input: z.object({
    bookings: z.array(z.object({ booking: z.string() }).nullable()).nullable(),
    why: z.string().nullable(),
  }),
});

export const trip = workflow(
  "trip",
  { input: z.object({ legs: z.array(z.string()) }) },
  (w, input) => {
    const booked = w.each("book", book, input.legs, (leg) => ({ leg }), { window: 2 });
    w.onFailure(booked, (f, failure) => {
      f.task("unbook", unbook, { bookings: w.ended(booked).results, why: failure.message });
    });
  },
);

const draftMail = task("draft-mail", {
  input: z.object({ list: z.string() }),
  output: type<{ html: string }>(),
});
const sendMail = task("send-mail", {
  input: z.object({ list: z.string(), html: z.string(), approvedBy: z.string() }),
});

export const campaign = workflow(
  "campaign",
  { input: z.object({ list: z.string() }) },
  (w, input) => {
    const draft = w.task("draft", draftMail, { list: input.list });
    const approval = w.waitFor("approval", "approved", {
      after: [draft],
      timeoutMs: 86_400_000,
      schema: z.object({ by: z.string() }),
    });
    w.task("send", sendMail, { list: input.list, html: draft.html, approvedBy: approval.by });
  },
);

const crawl = task("crawl", { input: z.object({ site: z.string() }) });
declare function pagesOf(site: string): Promise<{ account: string }[]>;

export const crawler = crawl.handle(async ({ site }, ctx) => {
  const found = await ctx.map("pages", () => pagesOf(site), syncAccount, { window: 10 });
  return found.reduce((rows, page) => rows + page.rows, 0);
});

const startNightly = task("start-nightly", { input: z.object({ region: z.string() }) });

/** Its handler, for a worker. */
export const nightlyStarter = (sluice: Sluice) =>
  startNightly.handle((input, ctx) =>
    ctx.transaction(async (tx) => (await sluice.start(nightly, input, { tx })).id),
  );

/** Every process may call this when it starts. */
export async function scheduleNightly(sluice: Sluice): Promise<void> {
  await sluice.schedules.set("nightly", {
    cron: "0 3 * * *",
    timeZone: "Europe/Berlin",
    task: startNightly,
    input: { region: "eu" },
  });
}
