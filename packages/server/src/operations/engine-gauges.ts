import type { EngineMeasure } from "@aenv/sandbox";
import { Gauge, type Registry } from "prom-client";

/** Metrics of the engine, read when they are collected. An engine has the same ones at every call. */
export function addEngineGauges(registry: Registry, read: () => readonly EngineMeasure[]): void {
  const first = new Map<string, EngineMeasure>();
  for (const measure of read()) first.set(measure.name, measure);
  for (const { name, help, label } of first.values())
    new Gauge({
      name,
      help,
      registers: [registry],
      ...(label !== undefined && { labelNames: [label.name] }),
      collect() {
        for (const { name: other, label: own, value } of read()) {
          if (other !== name) continue;
          if (own === undefined) this.set(value);
          else this.set({ [own.name]: own.value }, value);
        }
      },
    });
}
