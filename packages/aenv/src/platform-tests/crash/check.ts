import { setTimeout as pause } from "node:timers/promises";
import { call, post, remove, send } from "./load.ts";
import { lookAt } from "./sandboxes.ts";
import type { ServerProcess } from "./server-process.ts";
import type { Known, World } from "./world.ts";

/** How long the platform may take to settle. */
const SETTLE_MS = 20_000;

/**
 * Repeats all requests at any of the servers; then compares the responses with the earlier ones and with the processes that run.
 */
export async function check(servers: readonly ServerProcess[], world: World, home: string): Promise<void> {
  let turn = 0;
  const next = () => servers[turn++ % servers.length] as ServerProcess;
  await Promise.all(world.requests.map((request) => send(next(), world, request)));
  const open = world.requests.find(({ answer }) => answer === null);
  if (open !== undefined) throw new Error(`${open.key} got no response`);
  await Promise.all(world.known.filter((one) => one.isDeleteSent && !one.isDeleted).map((one) => remove(next(), one)));
  await Promise.all(world.known.map((one) => checkInstance(next(), one)));
  await checkTruth(servers, world, home);
  world.forget();
}

/** An instance that was reported as running still runs, with all acknowledged changes; a deleted one stays deleted. */
async function checkInstance(server: ServerProcess, one: Known): Promise<void> {
  const { data, status } = await server.ask("GET", `/env-instance/${one.id}?wait=20s`);
  // A server that is stopped ends its instances, and may be killed meanwhile.
  if (data?.reason === "the server was stopped") one.isDeleteSent = one.isDeleted = true;
  if (one.isDeleted) {
    if (status !== 404 && data.status !== "Terminated") throw new Error(`${one.id} was deleted and is ${data.status}`);
    const { status: refusal } = await post(`${server.dataUrl}/env-instance/${one.id}/functions/count`, {});
    if (refusal !== 404 && refusal !== 410) throw new Error(`${one.id} was deleted, but a call to it got ${refusal}`);
    return;
  }
  one.hasFailed = data.status === "Failed";
  if (one.hasFailed && !one.hasRun) return;
  if (data.status !== "Running") throw new Error(`${one.id} ran and is ${data?.status}: ${data?.reason}`);
  one.hasRun = true;
  const { status: answered, text } = await post(`${server.dataUrl}/env-instance/${one.id}/functions/count`, {});
  const count = answered === 200 ? JSON.parse(text).data : null;
  if (count === null) throw new Error(`${one.id} is reported as running, but a call got ${answered}: ${text}`);
  if (count < one.acknowledged || count > one.sent) {
    throw new Error(`${one.id} counts ${count}; ${one.acknowledged} increments were acknowledged and ${one.sent} sent`);
  }
  one.acknowledged = count;
  await call(server, one);
}

/** Every live instance is in exactly one sandbox, and no sandbox or process is left over. */
async function checkTruth(servers: readonly ServerProcess[], world: World, home: string): Promise<void> {
  const deadline = performance.now() + SETTLE_MS;
  for (;;) {
    const problem = await findProblem(servers, world, home);
    if (problem === null) return;
    // The end of a process takes some time.
    if (performance.now() > deadline) throw new Error(problem);
    await pause(50);
  }
}

async function findProblem(servers: readonly ServerProcess[], world: World, home: string): Promise<string | null> {
  const [server] = servers as [ServerProcess];
  const { items } = (await server.demand("GET", "/env-instance/list?limit=1000&tree=true")) as { items: Listed[] };
  const listed = items.filter(({ status }) => status === "Running" || status === "Creating");
  const live = listed.map(({ id }) => id);
  const unknown = listed.find(({ id, root }) => world.find(root ?? id) === undefined);
  if (unknown !== undefined) return `${unknown.id} is live, but no response named it or its root`;
  const orphan = listed.find(({ parent }) => parent !== undefined && !live.includes(parent));
  if (orphan !== undefined) return `${orphan.id} is the child '${orphan.path}' of ${orphan.parent}, which has ended`;
  const places = listed.flatMap(({ root, path }) => (root === undefined ? [] : `${root}/${path}`));
  const doubled = places.find((place, at) => places.indexOf(place) !== at);
  if (doubled !== undefined) return `there are two children ${doubled}`;
  const { sandboxes, unfinished, processes, slots } = await lookAt(home);
  if (unfinished.length > 0) return `folders are left unfinished: ${unfinished}`;
  if (!isSame(sandboxes, processes)) return `there are the sandboxes ${sandboxes} and processes of ${processes}`;
  const placed = [...slots.values()].flat();
  if (!isSame(placed, live)) return `the platform reports ${live} as live, but the sandboxes have ${placed}`;
  const waiting = [...slots.values()].filter((one) => one.length === 0).length;
  const wanted = (await Promise.all(servers.map(waitingProcesses))).reduce((sum, count) => sum + count, 0);
  return waiting <= wanted ? null : `${waiting} sandboxes are empty, but only ${wanted} may be`;
}

interface Listed {
  readonly id: string;
  readonly status: string;
  readonly parent?: string;
  readonly root?: string;
  readonly path?: string;
}

/** Processes without an instance: in the pool, or as hosts between two episodes. */
async function waitingProcesses(server: ServerProcess): Promise<number> {
  const text = await (await fetch(`${server.controlUrl}/metrics`)).text();
  const read = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  return read("aenv_hosts") + read("aenv_pool_blank_ready") + read("aenv_pool_prepared_ready");
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return JSON.stringify([...one].sort()) === JSON.stringify([...other].sort());
}
