import { type Domain, hashValue, readJson, setState, type Task, writeJson } from "@aenv/tau2/core";
import { openDomain } from "@aenv/tau2/domains";
import type { ExpectedCall } from "../platform/trainer.ts";
import { answerParent } from "../processes/answer.ts";
import { heldBytes } from "../processes/usage.ts";
import type { Hashes, Queries } from "./world.ts";

let domain: Domain;
let tasks: readonly Task[];

answerParent({ open, callSequences, lookups, direct, creates, copies, held, copyBytes, hashes });

function open({ dataPath, domain: name }: Queries["open"]): void {
  domain = openDomain(name, dataPath);
  tasks = domain.tasks.select("base");
}

type World = ReturnType<Domain["create"]>;
type Action = NonNullable<NonNullable<Task["evaluation_criteria"]>["actions"]>[number];
type Call = Pick<Action, "name" | "requestor" | "arguments">;

const actionsOf = (task: Task): readonly Action[] => task.evaluation_criteria?.actions ?? [];

/** The initial world of the task's episode. */
function begin(task: Task): World {
  const world = domain.create();
  setState(world, task.initial_state, task.initial_state?.message_history ?? []);
  return world;
}

function act(world: World, { name, requestor, arguments: args }: Call): string {
  return world.getResponse({ id: "1", name, requestor, arguments: args }).content ?? "";
}

/** The agent's golden actions of every task, with the answers that an instance must give over MCP. */
function callSequences(): readonly (readonly ExpectedCall[])[] {
  return tasks.map((task) => {
    const world = begin(task);
    return actionsOf(task)
      .filter(({ requestor }) => requestor === "assistant")
      .map((action, at) => questionOf(action.name, writeJson(action.arguments), act(world, overTheWire(action)), at + 1));
  });
}

/** One lookup call for each customer. */
function lookups({ count }: Queries["lookups"]): readonly (readonly ExpectedCall[])[] {
  const world = domain.create();
  return customers()
    .slice(0, count)
    .map((id) => {
      const args = JSON.stringify({ user_id: id });
      const look: Call = { name: "get_user_details", requestor: "assistant", arguments: readJson(args) as Call["arguments"] };
      return [questionOf(look.name, args, act(world, look), 1)];
    });
}

function customers(): readonly string[] {
  const { users } = JSON.parse(domain.data.text(domain.name, "db.json")) as { users: Record<string, unknown> };
  return Object.keys(users);
}

/** The arguments after a JSON round trip in JavaScript. */
function overTheWire(action: Action): Call {
  return { ...action, arguments: readJson(JSON.stringify(JSON.parse(writeJson(action.arguments)))) as Call["arguments"] };
}

/** The expected answer: the observation and the step, so that the answer of another instance is detected. */
function questionOf(name: string, args: string, observation: string, step: number): ExpectedCall {
  const answer = JSON.stringify({ observation: observation.trim(), reward: 0, done: false, step });
  return { name, arguments: JSON.parse(args), expect: JSON.stringify(answer).slice(1, -1) };
}

/** Golden actions of agent and user in new worlds, calls per second, including the creation of the worlds. */
function direct({ ms }: Queries["direct"]): number {
  let calls = 0;
  const from = performance.now();
  while (performance.now() - from < ms) {
    for (const task of tasks) {
      const world = begin(task);
      for (const action of actionsOf(task)) act(world, action);
      calls += actionsOf(task).length;
    }
  }
  return (calls * 1_000) / (performance.now() - from);
}

/** Microseconds for one new world. */
function creates({ count }: Queries["creates"]): number {
  return microseconds(count, () => domain.create());
}

/** Microseconds for one full copy of the database. */
function copies({ count }: Queries["copies"]): number {
  const database = JSON.parse(domain.data.text(domain.name, "db.json"));
  return microseconds(count, () => structuredClone(database));
}

function microseconds(count: number, work: () => unknown): number {
  const from = performance.now();
  for (let n = 0; n < count; n++) work();
  return ((performance.now() - from) * 1_000) / count;
}

/** Memory of a world after its golden actions. */
function held({ count }: Queries["held"]): Promise<number> {
  return heldBytes(count, (n) => {
    const task = tasks[n % tasks.length] as Task;
    const world = begin(task);
    for (const action of actionsOf(task)) act(world, action);
    return world;
  });
}

function copyBytes({ count }: Queries["copyBytes"]): Promise<number> {
  const database = JSON.parse(domain.data.text(domain.name, "db.json"));
  return heldBytes(count, () => structuredClone(database));
}

/** After golden actions that changed the database: the port's hash, and the hash of the whole dump. */
function hashes({ writes }: Queries["hashes"]): Hashes {
  const incrementalMs: number[] = [];
  const fullMs: number[] = [];
  let different = 0;
  for (const task of tasks) {
    const world = begin(task);
    let last = world.hashes()[0];
    for (const action of actionsOf(task)) {
      if (fullMs.length === writes) return { incrementalMs, fullMs, different };
      act(world, action);
      const from = performance.now();
      const hash = world.hashes()[0];
      const ms = performance.now() - from;
      if (hash === last || world.tools === null) continue;
      last = hash;
      incrementalMs.push(ms);
      const fullFrom = performance.now();
      const whole = hashValue(world.tools.db);
      fullMs.push(performance.now() - fullFrom);
      if (whole !== hash) different++;
    }
  }
  return { incrementalMs, fullMs, different };
}
