import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

/** The ports that replace those of the docs, which may be in use on this machine. */
export interface Ports {
  /** Replaces 8081 where `aenv run` serves a project. */
  readonly run: number;
  /** Replaces 8080 of a platform. */
  readonly control: number;
  /** Replaces 8081 of a platform. */
  readonly data: number;
}

export async function freePorts(): Promise<Ports> {
  const servers = Array.from({ length: 3 }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const [run = 0, control = 0, data = 0] = servers.map((server) => (server.address() as AddressInfo).port);
  for (const server of servers) server.close();
  return { run, control, data };
}

/**
 * A text of the docs with other ports, and nothing else changed. The docs write `127.0.0.1:8081` for `aenv run` and
 * `localhost` for a platform.
 */
export function withPorts(text: string, { run, control, data }: Ports): string {
  return text
    .replaceAll("127.0.0.1:8081", `127.0.0.1:${run}`)
    .replaceAll("port: 8081", `port: ${run}`)
    .replaceAll("localhost:8080", `localhost:${control}`)
    .replaceAll("localhost:8081", `localhost:${data}`)
    .replaceAll('"http://localhost"', `"http://localhost:${control}"`)
    .replace(/\baenv(ironment)? run\b(?!.*--port)/g, `aenv$1 run --port ${run}`)
    .replace(/\bnpx aenv(ironment)? call\b(?!.*--url)/g, `npx aenv$1 call --url http://127.0.0.1:${run}`)
    .replaceAll("--control-port 9080", `--control-port ${control}`)
    .replaceAll("--data-port 9081", `--data-port ${data}`);
}

/** The same ports as environment variables. */
export function portVariables({ control, data }: Ports): Record<string, string> {
  return { AENV_CONTROL_PORT: String(control), AENV_DATA_PORT: String(data), AENV_SYSTEM_URL: `http://localhost:${control}` };
}
