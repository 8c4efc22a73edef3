import { type PlatformServer, startPlatformServer } from "../platform/server.ts";
import { Trainer } from "../platform/trainer.ts";
import { takeTurns } from "../rounds.ts";
import { quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { dockerRun, startDockerWithNetwork } from "./docker.ts";
import { type BenchImage, PROGRAM } from "./image.ts";
import type { Scale } from "./scale.ts";

/** Instances that are created one after another in a turn, as the server is shipped: enough for a p99. */
const PER_TURN = 10;

const NAMES = {
  process: "engine process",
  runc: "engine oci with runc",
  runsc: "engine oci with runsc",
  docker: "engine docker",
} as const;
type Engine = keyof typeof NAMES;
type Settings = Readonly<Record<string, unknown>>;

/** From the create request to the first tool result of an environment with a sandbox of its own, on each engine, while no process waits. */
export async function measureEnvironments(report: Report, socket: string, { rounds }: Scale): Promise<void> {
  report.progress("create to first tool result on each engine");
  await using contenders = new AsyncDisposableStack();
  // A process that waits would be the same on all engines. Sandboxes wait as they do by default.
  const open = opener(contenders, socket, { poolMin: 0, poolMax: 0 });
  const starts = await onEachEngine((engine) => open(engine, { warm: 0 }, { count: 1, isPaced: false }));
  await takeTurns(2, starts);
  const times = await takeTurns(rounds, starts);
  const p50 = (engine: Engine) => quantile(times[engine].flat(), 0.5);
  for (const engine of ENGINES)
    report.add({
      name: `create to first tool result of an environment, ${NAMES[engine]}, p50`,
      value: p50(engine),
      unit: "ms",
      ...(engine !== "docker" && { beside: { what: "engine docker", value: p50("docker") } }),
    });
}

/** The same with all settings at their defaults, each time after the server has prepared what it keeps ready: what users get. */
export async function measureShipped(report: Report, image: BenchImage, socket: string, { rounds }: Scale): Promise<void> {
  report.progress("create to first tool result on each engine, as shipped");
  await using docker = await startDockerWithNetwork();
  const name = await image.importInto(docker.socket);
  await using contenders = new AsyncDisposableStack();
  const open = opener(contenders, socket, {});
  const starts = {
    ...(await onEachEngine((engine) => open(engine, {}, { count: PER_TURN, isPaced: true }))),
    run: async () => [await dockerRun(docker.socket, name, PROGRAM)],
  };
  await takeTurns(1, starts);
  const times = await takeTurns(rounds, starts);
  const at = (contender: keyof typeof starts, share: number) => quantile(times[contender].flat(), share);
  for (const engine of ENGINES)
    for (const share of [0.5, 0.99])
      report.add({
        name: `create to first tool result as shipped, ${NAMES[engine]}, p${share * 100}`,
        value: at(engine, share),
        unit: "ms",
        beside: { what: "docker run until its program prints a line, p50", value: at("run", 0.5) },
      });
  report.add({
    name: "create to first tool result as shipped, engine oci with runc, p50, and engine process",
    value: at("runc", 0.5),
    unit: "ms",
    beside: { what: NAMES.process, value: at("process", 0.5) },
    aim: { of: "ratio", is: "at most", limit: 2 },
  });
}

const ENGINES = Object.keys(NAMES) as Engine[];

async function onEachEngine<T>(open: (engine: Engine) => Promise<T>): Promise<Record<Engine, T>> {
  return { process: await open("process"), runc: await open("runc"), runsc: await open("runsc"), docker: await open("docker") };
}

interface Turn {
  readonly count: number;
  readonly isPaced: boolean;
}

/** Starts a server for an engine, and returns what creates the instances of a turn on it. The stack closes it. */
function opener(contenders: AsyncDisposableStack, socket: string, settings: Settings) {
  const ofEngine: Record<Engine, Settings> = {
    process: { engine: "process" },
    runc: { engine: "oci", runtime: "runc" },
    runsc: { engine: "oci", runtime: "runsc" },
    docker: { engine: "docker", dockerSocket: socket },
  };
  return async (engine: Engine, deployConfig: Settings, turn: Turn): Promise<() => Promise<readonly number[]>> => {
    const server: PlatformServer = contenders.use(await startPlatformServer({ ...settings, ...ofEngine[engine] }));
    const trainer = contenders.use(await Trainer.open(server));
    const ref = await server.publish("ledger", "instance", deployConfig);
    return () => trainer.query("firstResults", { ref, ...turn });
  };
}
