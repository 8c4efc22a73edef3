import {
  type ChatMessage,
  episodeAbilities,
  episodePrompt,
  episodeReply,
  episodeStatus,
  instanceRoutes,
  isObject,
  resetResult,
  roleRewards,
  STATUS_META,
  type Task,
  taskPage,
} from "@aenv/contract";
import { toReward } from "@aenv/sdk";
import { type Check, need, needEpisodes, type Subject } from "./check.ts";
import { act, digestOf, oracleOf, parsed, reset, SEED } from "./episode.ts";
import { NotOffered, Violation } from "./violation.ts";
import { cut, shown } from "./wire.ts";

export const episodeChecks: readonly Check[] = [
  {
    name: "says in GET /episode which parts of an episode it has",
    run: async (subject) => {
      const answer = await subject.wire.send("GET", instanceRoutes.abilities.path);
      if (answer.status === 404 || answer.status === 405) return "it has none: a plain tool server";
      subject.abilities = parsed(episodeAbilities, await subject.wire.ask("GET", instanceRoutes.abilities.path), "GET /episode");
      const probe = await subject.wire.send("POST", instanceRoutes.reset.path, {});
      if (probe.status === 501) {
        subject.abilities = null;
        subject.withoutEpisodes = "it cannot be reset, so it has one episode only";
        return subject.withoutEpisodes;
      }
      const has = Object.entries(subject.abilities).flatMap(([name, value]) => (value === true ? [name] : []));
      return has.length === 0 ? "none of the optional ones" : has.join(", ");
    },
  },
  { name: "lists its tasks by page and by split", run: listTasks },
  {
    name: "refuses a page of tasks that is no number",
    run: async (subject) => {
      needTasks(subject);
      for (const query of ["limit=many", "offset=-1"])
        await subject.wire.refused("GET", `/task/list?${query}`, undefined, [400, 422], ["request.invalid"]);
      return undefined;
    },
  },
  {
    name: "begins the task and the seed that a reset names, and keeps the task that it does not name",
    run: async (subject) => {
      needEpisodes(subject);
      for (const task of subject.tasks.length === 0 ? [null] : subject.tasks) await reset(subject.wire, task);
      const { task } = await reset(subject.wire, subject.tasks[0] ?? null);
      const again = parsed(resetResult, await subject.wire.ask("POST", "/task/reset", { seed: SEED + 1 }), "POST /task/reset");
      if (again.task?.id !== task?.id) throw new Violation(`a reset without a task must keep '${task?.id}'; it began '${again.task?.id}'`);
      return undefined;
    },
  },
  {
    name: "refuses an unknown task with task.not_found, and goes on with the episode before",
    run: async (subject) => {
      needTasks(subject);
      await reset(subject.wire, subject.tasks[0] ?? null);
      const before = await digestOf(subject);
      await subject.wire.refused("POST", "/task/reset", { task: "aenv-no-such-task" }, [404], ["task.not_found"]);
      if ((await digestOf(subject)) !== before) throw new Violation("a refused reset has changed the digest of the state");
      return undefined;
    },
  },
  {
    name: "begins equally with the same task and seed",
    run: async (subject) => {
      const { digest, prompt } = needEpisodes(subject);
      if (!digest && !prompt) throw new NotOffered("it has neither a digest nor a prompt to compare");
      const look = async (task: Task | null) => {
        const { observation } = await reset(subject.wire, task);
        return [
          observation,
          await digestOf(subject),
          prompt ? await subject.wire.ask("GET", subject.wire.ofRole("/episode/prompt")) : null,
        ];
      };
      for (const task of subject.tasks.length === 0 ? [null] : subject.tasks) {
        const [first, second] = [JSON.stringify(await look(task)), JSON.stringify(await look(task))];
        if (first !== second)
          throw new Violation(
            `two resets to ${nameOf(task)} with the seed ${SEED} differ in observation, digest or prompt: ${cut(first)} and ${cut(second)}`,
          );
      }
      return undefined;
    },
  },
  {
    name: "has a prompt of messages",
    run: async (subject) => {
      need(subject, "prompt");
      const { messages } = parsed(
        episodePrompt,
        await subject.wire.ask("GET", subject.wire.ofRole("/episode/prompt")),
        "GET /episode/prompt",
      );
      return messages.length === 0 ? "no messages" : undefined;
    },
  },
  {
    name: "reports a status, which is not done after a reset",
    run: async (subject) => {
      need(subject, "status");
      await reset(subject.wire, subject.tasks[0] ?? null);
      const { done } = parsed(episodeStatus, await subject.wire.ask("GET", "/episode/status"), "GET /episode/status");
      if (done) throw new Violation("GET /episode/status says that the episode is over after a reset");
      const call = (await oracleOf(subject))?.find((action) => "tool" in action);
      if (call === undefined || !("tool" in call)) return undefined;
      const { _meta } = (await subject.wire.rpc("tools/call", { name: call.tool, arguments: call.arguments })) as {
        _meta?: Record<string, unknown>;
      };
      const status = _meta?.[STATUS_META];
      if (status === undefined) return `results of tools have no _meta["${STATUS_META}"], so that clients ask for the status after each`;
      parsed(episodeStatus, status, `_meta["${STATUS_META}"] of a tool result`);
      return undefined;
    },
  },
  {
    name: "computes a reward that is a number, with components that are numbers",
    run: async (subject) => {
      const answer = await subject.wire.send("POST", instanceRoutes.reward.path, {});
      if (answer.status === 404 || answer.status === 405) throw new NotOffered("it has no POST /task/reward");
      const code = isObject(answer.json) && isObject(answer.json.errorInfo) ? answer.json.errorInfo.code : undefined;
      if (answer.status !== 200 && typeof code === "string" && NO_SCORE.has(code))
        throw new NotOffered(`it has no reward without arguments, or before an agent has acted: ${shown(answer)}`);
      return rewardText(await subject.wire.ask("POST", instanceRoutes.reward.path, {}));
    },
  },
  {
    name: "computes the reward of a step",
    run: async (subject) => {
      need(subject, "stepRewards");
      return rewardText(await subject.wire.ask("POST", instanceRoutes.stepReward.path, subject.wire.withRole({})));
    },
  },
  {
    name: "answers what an agent says, and refuses a message that is none",
    run: async (subject) => {
      need(subject, "reply");
      await reset(subject.wire, subject.tasks[0] ?? null);
      const message: ChatMessage = { role: "assistant", content: "I do not know yet." };
      parsed(episodeReply, await subject.wire.ask("POST", "/episode/reply", subject.wire.withRole({ message })), "POST /episode/reply");
      await subject.wire.refused("POST", "/episode/reply", { message: "no message" }, [400, 422], ["request.invalid"]);
      return undefined;
    },
  },
  {
    name: "hears what an agent says beside its tool calls",
    run: async (subject) => {
      need(subject, "hear");
      await reset(subject.wire, subject.tasks[0] ?? null);
      await subject.wire.ask("POST", "/episode/hear", subject.wire.withRole({ message: { role: "assistant", content: "I look first." } }));
      return undefined;
    },
  },
  {
    name: "restores a snapshot to an equal digest, from which it goes on equally",
    run: async (subject) => {
      const { snapshot, digest } = needEpisodes(subject);
      if (snapshot !== true && !(await hasSnapshots(subject))) throw new NotOffered('GET /episode does not say "snapshot": true');
      if (!digest) throw new NotOffered("it has no digest to compare");
      await reset(subject.wire, subject.tasks[0] ?? null);
      const [first, ...rest] = (await oracleOf(subject)) ?? [];
      if (first !== undefined) await act(subject, first);
      const stored = await subject.wire.ask("POST", "/state/snapshot");
      const before = await digestOf(subject);
      const [next] = rest;
      if (next !== undefined) await act(subject, next);
      const after = await digestOf(subject);
      await reset(subject.wire, subject.tasks.at(-1) ?? null, SEED + 1);
      await subject.wire.ask("POST", "/state/restore", { snapshot: stored });
      if ((await digestOf(subject)) !== before)
        throw new Violation("the digest after POST /state/restore differs from that of the stored state");
      if (next !== undefined) await act(subject, next);
      if ((await digestOf(subject)) !== after)
        throw new Violation(
          "the same action leads to another digest after POST /state/restore: the snapshot does not hold all of the state",
        );
      return undefined;
    },
  },
  {
    name: "refuses a snapshot that is none, and goes on with the episode before",
    run: async (subject) => {
      const { snapshot } = needEpisodes(subject);
      if (snapshot !== true) throw new NotOffered('GET /episode does not say "snapshot": true');
      const before = await digestOf(subject);
      for (const damaged of [null, "text", { aenv: "no snapshot" }])
        await subject.wire.refused("POST", "/state/restore", { snapshot: damaged }, [400, 422], ["snapshot.invalid", "request.invalid"]);
      if ((await digestOf(subject)) !== before) throw new Violation("a refused snapshot has changed the digest of the state");
      return undefined;
    },
  },
];

async function hasSnapshots({ wire }: Subject): Promise<boolean> {
  return (await wire.send("POST", "/state/snapshot", {})).status === 200;
}

/** Some tasks of each split, in their order. */
async function listTasks(subject: Subject): Promise<string | undefined> {
  const { wire, maxTasks } = subject;
  const answer = await wire.send("GET", "/task/list?limit=1");
  if (answer.status === 404 || answer.status === 405) throw new NotOffered("it has no GET /task/list");
  const page = async (query: string) => parsed(taskPage, await wire.ask("GET", `/task/list?${query}`), `GET /task/list?${query}`);
  const { total } = await page("limit=1");
  const all = await page(`limit=${READ_TASKS}`);
  if (all.total !== total || all.items.length !== Math.min(total, READ_TASKS))
    throw new Violation(`GET /task/list has ${all.items.length} tasks and a total of ${all.total}, with limit=1 one of ${total}`);
  const ids = all.items.map(({ id }) => id);
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice !== undefined) throw new Violation(`GET /task/list has two tasks '${twice}'`);
  if (total > 1) {
    const { items } = await page("offset=1&limit=1");
    if (items.length !== 1 || items[0]?.id !== ids[1])
      throw new Violation(`GET /task/list?offset=1&limit=1 must have the second task, '${ids[1]}'`);
  }
  const splits = [...new Set(all.items.flatMap(({ split, splits: more = [] }) => [...(split === undefined ? [] : [split]), ...more]))];
  const chosen: Task[] = [];
  for (const split of splits) {
    const { items } = await page(`split=${encodeURIComponent(split)}&limit=${maxTasks}`);
    const other = items.find((task) => task.split !== split && task.splits?.includes(split) !== true);
    if (other !== undefined || items.length === 0)
      throw new Violation(`GET /task/list?split=${split} must have the tasks of this split only`);
    chosen.push(...items);
  }
  const none = await page("split=aenv-no-such-split");
  if (splits.length > 0 && none.total !== 0) throw new Violation("GET /task/list with a split that does not exist must have no tasks");
  const order =
    splits.length === 0
      ? all.items
      : Array.from({ length: maxTasks }, (_, at) =>
          splits.flatMap((split) => chosen.filter((task) => task.split === split)[at] ?? []),
        ).flat();
  subject.tasks = order.slice(0, maxTasks);
  return `${total} task${total === 1 ? "" : "s"}${splits.length === 0 ? "" : ` in ${splits.join(", ")}`}`;
}

/** The reward takes arguments, there is none, or there is none yet. The oracle's episode has to have one. */
const NO_SCORE: ReadonlySet<string> = new Set(["request.invalid", "reward.missing", "reward.failed"]);

/** Only the first tasks of a long list are looked at. */
const READ_TASKS = 500;

function needTasks(subject: Subject): void {
  if (subject.tasks.length === 0) throw new NotOffered("it has no tasks");
}

function nameOf(task: Task | null): string {
  return task === null ? "no task" : `the task '${task.id}'`;
}

export function rewardText(data: unknown): string {
  if (isObject(data) && data.roles !== undefined) {
    const { roles } = parsed(roleRewards, data, "POST /task/reward");
    return Object.entries(roles)
      .map(([role, { outcome }]) => `${role} ${outcome.kind === "scored" ? outcome.reward : "unscored"}`)
      .join(", ");
  }
  const { reward, components } = toReward(data, "it");
  const parts = Object.entries(components).map(([name, value]) => `${name} ${value}`);
  return parts.length === 0 ? `${reward}` : `${reward}: ${parts.join(", ")}`;
}
