import type { EngineMeasure } from "@aenv/sandbox";
import { Registry } from "prom-client";
import { expect, it } from "vitest";
import { addEngineGauges } from "./engine-gauges.ts";

it("the numbers of an engine are metrics, as they are when they are collected", async () => {
  const registry = new Registry();
  let running = 1;
  const read = (): readonly EngineMeasure[] => [
    { name: "pods", help: "Pods", label: { name: "phase", value: "Running" }, value: running },
    { name: "pods", help: "Pods", label: { name: "phase", value: "Failed" }, value: 0 },
    { name: "calls", help: "Calls", value: 10 * running },
  ];
  addEngineGauges(registry, read);
  running = 3;
  const text = await registry.metrics();
  expect(text).toContain('pods{phase="Running"} 3');
  expect(text).toContain('pods{phase="Failed"} 0');
  expect(text).toContain("\ncalls 30");
});
