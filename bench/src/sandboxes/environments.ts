import { startPlatformServer } from "../platform/server.ts";
import { Trainer } from "../platform/trainer.ts";
import { takeTurns } from "../rounds.ts";
import { quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";
import type { Scale } from "./scale.ts";

/** From the create request to the first tool result of an environment with a sandbox of its own, on each engine. */
export async function measureEnvironments(report: Report, socket: string, { rounds }: Scale): Promise<void> {
  report.progress("create to first tool result on each engine");
  await using contenders = new AsyncDisposableStack();
  const open = async (engine: string, settings: Readonly<Record<string, unknown>>) => {
    // No process waits: it would be the same on all engines. Sandboxes wait as they do by default.
    const server = contenders.use(await startPlatformServer({ poolMin: 0, poolMax: 0, engine, ...settings }));
    const trainer = contenders.use(await Trainer.open(server));
    const ref = await server.publish("ledger", "instance", { warm: 0 });
    return () => trainer.query("firstResults", { ref, count: 1, isPaced: false });
  };
  const starts = {
    process: await open("process", {}),
    runc: await open("oci", { runtime: "runc" }),
    runsc: await open("oci", { runtime: "runsc" }),
    docker: await open("docker", { dockerSocket: socket }),
  };
  await takeTurns(2, starts);
  const times = await takeTurns(rounds, starts);
  const p50 = (name: keyof typeof starts) => quantile(times[name].flat(), 0.5);
  for (const [name, what] of Object.entries(NAMES) as [keyof typeof starts, string][])
    report.add({
      name: `create to first tool result of an environment, ${what}, p50`,
      value: p50(name),
      unit: "ms",
      ...(name !== "docker" && { beside: { what: "engine docker", value: p50("docker") } }),
    });
}

const NAMES = {
  process: "engine process",
  runc: "engine oci with runc",
  runsc: "engine oci with runsc",
  docker: "engine docker",
} as const;
