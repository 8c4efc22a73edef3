import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { Metrics } from "./metrics.ts";

const read = (name: string) => readFileSync(new URL(`../../../../deploy/grafana/${name}`, import.meta.url), "utf8");

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}
interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

const panels: Panel[] = JSON.parse(read("dashboard.json")).panels;
const rules: Rule[] = parse(read("alerts.yaml")).groups.flatMap((group: { rules: Rule[] }) => group.rules);
const expressions = [
  ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [`panel ${title}`, expr] as const)),
  ...rules.map(({ alert, expr }) => [`alert ${alert}`, expr] as const),
];

/** Metrics and labels that Prometheus adds, not the server. */
const SCRAPED = ["up"];
const LABELS_OF_SCRAPE = ["job", "instance"];
const METRIC = /\b(?:aenv|process|nodejs)_\w+|\bup\b/g;

/** Every metric of a server on the engine kubernetes, which has the most, with its labels. Histograms by the names of their series. */
function exported(): Map<string, readonly string[]> {
  const cluster = {
    podsByPhase: {},
    waitingPods: 0,
    podClaims: {},
    apiCounters: { calls: {}, throttled: 0, retries: 0 },
  };
  const { registry } = new Metrics({
    liveInstances: () => 0,
    pool: () => new Map(),
    poolCopies: () => 0,
    hosts: () => 0,
    waiting: () => 0,
    waitingForMemory: () => 0,
    frozen: () => 0,
    frozenTotals: () => ({ savedCpuMs: 0, frozenMs: 0 }),
    poolTroubled: () => 0,
    rollouts: () => ({ running: 0, waiting: 0 }),
    verifications: () => ({ running: 0, waiting: 0 }),
    workerProcesses: () => ({ running: 1, replaced: 0 }),
    workers: () => null,
    cluster,
  });
  const found = new Map<string, readonly string[]>();
  for (const metric of registry.getMetricsAsArray()) {
    const { name, type, labelNames = [] } = metric as unknown as { name: string; type: string; labelNames?: string[] };
    if (type !== "histogram") found.set(name, labelNames);
    else for (const series of ["bucket", "sum", "count"]) found.set(`${name}_${series}`, [...labelNames, "le"]);
  }
  return found;
}

const known = exported();

/** The metrics of an expression, each with the labels that select or group it. */
function uses(expr: string): { name: string; labels: string[] }[] {
  // Labels of `by` belong to every metric of the innermost expression that follows it; here each has one.
  return [...expr.matchAll(/(?:by \(([^)]*)\) ?\((?:rate|increase)?\(?)?\b((?:aenv|process|nodejs)_\w+|up)\b(?:\{([^}]*)\})?/g)].map(
    ([, by = "", name = "", selectors = ""]) => ({
      name,
      labels: [
        ...by.split(",").map((one) => one.trim()),
        ...[...selectors.matchAll(/(\w+)[=!]~?"/g)].map(([, label = ""]) => label),
      ].filter((label) => label !== ""),
    }),
  );
}

describe("deploy/grafana", () => {
  it.each(expressions)("uses only metrics and labels that the server exports: %s", (_, expr) => {
    const used = uses(expr);
    expect(used.map(({ name }) => name)).toEqual(expr.match(METRIC));
    for (const { name, labels } of used) {
      if (SCRAPED.includes(name)) continue;
      expect([name, known.has(name)]).toEqual([name, true]);
      const unknown = labels.filter((label) => !LABELS_OF_SCRAPE.includes(label) && !known.get(name)?.includes(label));
      expect([name, unknown]).toEqual([name, []]);
    }
  });

  it("shows every metric of the server in the dashboard", () => {
    const shown = new Set(
      expressions.filter(([where]) => where.startsWith("panel")).flatMap(([, expr]) => uses(expr).map(({ name }) => name)),
    );
    const own = [...known.keys()].filter((name) => name.startsWith("aenv_") && !/_(?:sum|count)$/.test(name));
    expect(own.filter((name) => !shown.has(name))).toEqual([]);
  });

  it("has a summary and the next step in every alert", () => {
    expect(rules.length).toBeGreaterThan(5);
    for (const { alert, annotations } of rules) {
      expect(alert).toMatch(/^Aenv[A-Z]/);
      expect(Object.keys(annotations)).toEqual(["summary", "description"]);
    }
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });

  it("names a share as a percentage only in alerts whose value is one", () => {
    const percentages = rules.filter(({ annotations: { summary = "" } }) => summary.includes("$value | humanizePercentage"));
    expect(percentages.length).toBeGreaterThan(0);
    // The value of `a and b` is that of `a`.
    for (const { alert, expr } of percentages) expect([alert, expr.split(/\band\b/)[0]]).toEqual([alert, expect.stringContaining(" / ")]);
  });

  it("places every panel of the dashboard where no other one is", () => {
    const cells = (panels as unknown as { gridPos: { x: number; y: number; w: number; h: number } }[]).flatMap(
      ({ gridPos: { x, y, w, h } }) => Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });
});
