import { Counter, Gauge, type Registry } from "prom-client";

type ByLabel = Readonly<Record<string, number>>;

/** Metrics of a registry whose values are read elsewhere whenever they are shown. A total only grows. */
export function readMetrics(registry: Registry) {
  const registers = [registry];
  return {
    gauge: (name: string, help: string, read: () => Promise<number> | number) =>
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          this.set(await read());
        },
      }),
    gauges: (name: string, help: string, label: string, read: () => ByLabel) =>
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          for (const [value, count] of Object.entries(read())) this.set({ [label]: value }, count);
        },
      }),
    total: (name: string, help: string, read: () => number) =>
      new Counter({
        name,
        help,
        registers,
        collect() {
          this.reset();
          this.inc(read());
        },
      }),
    totals: (name: string, help: string, label: string, read: () => ByLabel) =>
      new Counter({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          this.reset();
          for (const [value, count] of Object.entries(read())) this.inc({ [label]: value }, count);
        },
      }),
  };
}
